import { describeError } from '../../../src/sinks/logs/describe-error';

describe('describeError', () => {
  it('appends the messages of the causes', () => {
    const cause = new Error('connection refused');
    expect(describeError(new Error('cannot connect', { cause }))).toBe('cannot connect: connection refused');
  });

  it('does not repeat a cause whose message an earlier message quotes', () => {
    const cause = new Error("ENOENT: no such file or directory, open '/ca.pem'");
    const quoting = new Error(`cannot read the file: ${cause.message}`, { cause });
    expect(describeError(quoting)).toBe("cannot read the file: ENOENT: no such file or directory, open '/ca.pem'");
    expect(describeError(new Error(`no TLS: ${quoting.message}`, { cause: quoting }))).toBe(
      `no TLS: ${quoting.message}`,
    );
    expect(describeError(new Error('no TLS', { cause: quoting }))).toBe(`no TLS: ${quoting.message}`);
  });

  it('does not append a cause whose code an earlier message contains in parentheses', () => {
    const cause = Object.assign(new Error('listen EADDRINUSE: address already in use'), { code: 'EADDRINUSE' });
    const error = new Error('cannot listen on :80: another process is already listening there (EADDRINUSE)', { cause });
    expect(describeError(error)).toBe(error.message);
  });

  it('omits the files from which a missing module was required', () => {
    const cause = new Error("Cannot find module 'x'\nRequire stack:\n- /a.js\n- /b.js");
    expect(describeError(cause)).toBe("Cannot find module 'x'");
    const quoting = new Error("x cannot be loaded (Cannot find module 'x'); install it", { cause });
    expect(describeError(quoting)).toBe(quoting.message);
  });

  it('includes the stack of an internal error, also where its message is quoted', () => {
    const cause = new TypeError('x is not a function');
    const text = describeError(new Error(`cannot be used: ${cause.message}`, { cause }));
    expect(text).toContain('cannot be used: x is not a function: TypeError: x is not a function\n    at ');
  });
});

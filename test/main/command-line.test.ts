import packageFile from '../../package.json';
import { answerCommandLine } from '../../src/main/command-line';

function answer(...argv: string[]) {
  const written = { stdout: '', stderr: '' };
  const code = answerCommandLine(argv, {
    stdout: { write: (text) => (written.stdout += text) },
    stderr: { write: (text) => (written.stderr += text) },
  });
  return { code, ...written };
}

const HINT = 'weir is configured by environment variables; weir --help lists them.\n';

describe('the command line of weir', () => {
  it('runs the service when it is empty', () => {
    expect(answer()).toEqual({ code: undefined, stdout: '', stderr: '' });
  });

  it.each(['-version', '--version'])('prints the version of package.json with %s', (flag) => {
    expect(answer(flag)).toEqual({ code: 0, stdout: `weir ${packageFile.version}\n`, stderr: '' });
  });

  it.each(['-h', '-help', '--help'])('prints the settings with %s', (flag) => {
    expect(answer(flag)).toEqual({ code: 0, stdout: expect.stringContaining('KVSTORE_URL'), stderr: '' });
  });

  it.each([
    ['--verison', 'unknown flag -verison; did you mean -version?'],
    ['--port=8080', 'unknown flag -port'],
    ['start', 'unexpected argument "start"'],
    ['--', undefined],
  ])('rejects an argument that it does not know: %s', (argument, message) => {
    if (message === undefined) expect(answer(argument).code).toBeUndefined();
    else expect(answer(argument)).toEqual({ code: 1, stdout: '', stderr: `weir: ${message}\n${HINT}` });
  });

  it.each([
    ['REDIS_AUTH=hunter2', '"REDIS_AUTH=…"'],
    ['redis://user:hunter2@host:1', '"redis://***@host:1"'],
    ['--redis-auth=hunter2', 'unknown flag -redis-auth\n'],
  ])('does not repeat a secret in %s', (argument, shown) => {
    const { code, stderr } = answer(argument);
    expect(code).toBe(1);
    expect(stderr).toContain(shown);
    expect(stderr).not.toContain('hunter2');
  });
});

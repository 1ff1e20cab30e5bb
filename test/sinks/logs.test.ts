import { DecisionError } from '../../src/counting/decision-error';
import { BoundedLines, type BoundedLinesOptions } from '../../src/sinks/logs/bounded-lines';
import { rejectionWarnings, unmatchedWarnings } from '../../src/sinks/logs/sampled-warnings';
import { CONTROL, HOSTILE, SHOWN } from '../support/data/hostile-text';
import { RecordedLog } from '../support/data/recorded-log';
import { request } from '../support/data/requests';
import { limit, rulesetOf } from '../support/data/rules';
import { LOG_LEVELS, type LoggerOptions, createLogger, describeError } from '../../src/sinks/logs/logger';

const RFC_3339 = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/;

function recorded(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const stream = { write: (line: string) => void lines.push(line) };
  return { lines, log: createLogger({ level: 'debug', format: 'text', ...options, stream }) };
}

/** The single line that `act` makes the text logger write, without its time. */
function textOf(act: (log: ReturnType<typeof createLogger>) => void): string {
  const { lines, log } = recorded();
  act(log);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(new RegExp(`^time="${RFC_3339.source}" level=`));
  return lines[0]!.slice(lines[0]!.indexOf('level='));
}

describe('a text log line', () => {
  it('has its fields after the message, quoted only where necessary, without undefined ones', () => {
    const texts = { file: 'a.yaml', empty: '', reason: 'a "b" c=d', path: 'C:\\x' };
    expect(textOf((log) => log.info('x', { ...texts, count: 3, ok: true, none: null, gone: undefined }))).toBe(
      String.raw`level=info msg="x" file=a.yaml empty="" reason="a \"b\" c=d" path="C:\\x" count=3 ok=true none=null` +
        '\n',
    );
  });

  it('stays one line for any text', () => {
    const hostile = 'a\nlevel=fatal msg="forged"\r\u001b[31m\u009b\u2028\u202e\u2066';
    const line = textOf((log) => log.warn(hostile, { 'bad key\n=': hostile }));
    const quoted = String.raw`"a\nlevel=fatal msg=\"forged\"\r\u001b[31m\u009b\u2028\u202e\u2066"`;
    expect(line).toBe(`level=warning msg=${quoted} bad_key__=${quoted}\n`);
  });
});

it('a JSON log line is an object with level, time, message and fields, of which none replaces its own members', () => {
  const { lines, log } = recorded({ format: 'json' });
  log.warn('store is "unreachable"', { attempt: 2, level: 'y', '@message': 'z' });
  expect(lines[0]).toMatch(/\}\n$/);
  expect(JSON.parse(lines[0]!)).toEqual({
    level: 'warning',
    '@timestamp': expect.stringMatching(RFC_3339),
    '@message': 'store is "unreachable"',
    attempt: 2,
    level_: 'y',
    '@message_': 'z',
  });
});

it.each(['text', 'json'] as const)('a log line in %s shows every character of a text in its place', (format) => {
  const { lines, log } = recorded({ format });
  log.warn(HOSTILE, { word: 'a\u202e', field: HOSTILE });
  expect([lines.length, lines[0]!.slice(-1)]).toEqual([1, '\n']);
  expect(lines[0]).not.toMatch(CONTROL);
  expect(lines[0]!.split(SHOWN)).toHaveLength(3);
});

describe('log levels', () => {
  it.each(LOG_LEVELS.map((level, index) => [level, index] as const))('from %s on are written', (level, index) => {
    const { lines, log } = recorded({ level });
    for (const method of ['debug', 'info', 'warn', 'error', 'fatal'] as const) log[method]('x');
    const names = ['debug', 'info', 'warning', 'error', 'fatal'].slice(index);
    expect(lines.map((line) => / level=(.*)/.exec(line)?.[1])).toEqual(names.map((name) => `${name} msg="x"`));
    expect(log.isDebug).toBe(level === 'debug');
    log.notice('serving');
    // Notices pass up to warning.
    const notices = lines.slice(names.length).map((line) => line.slice(line.indexOf('level=')));
    expect(notices).toEqual(index < 3 ? ['level=info msg="serving"\n'] : []);
  });
});

describe('a logged error', () => {
  it('is its message and those of its causes, or of the errors of an aggregate, in finite length', () => {
    function logged(error: Error) {
      return textOf((log) => log.error('x', { error }));
    }
    const error = new DecisionError('store_failed', 'the store failed', { cause: new Error('connect ECONNREFUSED') });
    expect(logged(error)).toBe('level=error msg="x" error="the store failed: connect ECONNREFUSED"\n');
    const aggregate = new AggregateError([new Error('no v6'), new Error('no v4')]);
    expect(logged(aggregate)).toContain('error="Error: no v6; Error: no v4"');
    const loop = new Error('loop');
    loop.cause = loop;
    expect(logged(loop)).toMatch(/error=loop\n$/);
    // An internal error has its stack.
    expect(logged(new TypeError('oops'))).toMatch(/error="TypeError: oops\\n {4}at .*logs\.test\.ts/);
  });

  it('does not repeat a cause whose message, or code in parentheses, an earlier message has', () => {
    const cause = new Error("ENOENT: no such file or directory, open '/ca.pem'");
    const quoting = new Error(`cannot read the file: ${cause.message}`, { cause });
    expect(describeError(quoting)).toBe(quoting.message);
    const text = `no TLS: ${quoting.message}`;
    for (const message of [text, 'no TLS']) expect(describeError(new Error(message, { cause: quoting }))).toBe(text);
    const listen = Object.assign(new Error('listen EADDRINUSE: address already in use'), { code: 'EADDRINUSE' });
    const coded = new Error('cannot listen on :80: another process listens (EADDRINUSE)', { cause: listen });
    expect(describeError(coded)).toBe(coded.message);
  });

  it('omits the files that required a missing module, and has the stack of an internal error that is quoted', () => {
    const missing = new Error("Cannot find module 'x'\nRequire stack:\n- /a.js\n- /b.js");
    expect(describeError(missing)).toBe("Cannot find module 'x'");
    const quoting = new Error("x cannot be loaded (Cannot find module 'x'); install it", { cause: missing });
    expect(describeError(quoting)).toBe(quoting.message);
    const cause = new TypeError('x is not a function');
    const text = describeError(new Error(`cannot be used: ${cause.message}`, { cause }));
    expect(text).toContain('cannot be used: x is not a function: TypeError: x is not a function\n    at ');
  });
});

describe.each(['text', 'json'] as const)('a %s line', (format) => {
  it('never has credentials, wherever they are passed', () => {
    const { lines, log } = recorded({ format });
    const url = 'redis://user:hunter2@host';
    const cause = new Error(`refused by ${url}`);
    log.error(url, { url, error: new Error(url, { cause }), password: 'hunter2', auth: 'hunter2', token: 'hunter2' });
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain('hunter2');
    expect(lines[0]).toContain('redis://***@host');
  });

  it('has texts that are too long cut off, shows it, and is complete', () => {
    const text = 'x'.repeat(1024 * 1024);
    const { lines, log } = recorded({ format });
    log.debug(text, { value: text, error: new Error(text), after: 'after' });
    expect(lines).toHaveLength(1);
    expect(lines[0]!.length).toBeLessThan(256 * 1024);
    const short = lines[0]!.replaceAll('x'.repeat(64 * 1024), 'X');
    expect(short.match(/X…/g)).toHaveLength(3);
    if (format === 'text') expect(short).toMatch(/ after=after\n$/);
    else expect(JSON.parse(short)).toMatchObject({ after: 'after' });
  });
});

test('a text contains no part of a secret at the place where it is cut off', () => {
  const { lines, log } = recorded({ mask: (masked) => masked.replaceAll('hunter2', '***') });
  const rest = 'x'.repeat(1024 * 1024);
  for (let before = 65_520; before <= 65_540; before += 1) log.error(`${'x'.repeat(before)}hunter2${rest}`);
  const ends = lines.map((line) => /x([^x]*)…/.exec(line)?.[1]);
  expect(new Set(ends)).toEqual(new Set(['', '*', '**', '***']));
});

describe('the warning about calls that nothing limits', () => {
  const ruleset = rulesetOf('shop', { key: 'user', value: 'anna', rateLimit: limit(1, 'DAY') });

  it.each([
    [true, 'user=anne,plan=free', "entry 1 has the value 'anne', but the rule 'anna'"],
    [false, 'user,plan', "entry 1 has another value than the rule: 'anna'"],
  ])(
    'has the nearest rule, and values of the call only if they may be shown: %s',
    (showsValues, descriptors, difference) => {
      const log = new RecordedLog();
      unmatchedWarnings(log, showsValues).found(request('shop', ['user=anne,plan=free']), ruleset, 0);
      expect(log.lines).toEqual([
        {
          level: 'warn',
          message: 'calls are not limited: no rule matches their descriptors',
          fields: { domain: 'shop', descriptors, nearest: 'shop.user_anna', difference },
        },
      ]);
    },
  );
});

describe('the warning about calls that are rejected', () => {
  const peer = { remoteAddress: '::ffff:10.0.0.7', remotePort: 5123 };

  function watch() {
    const log = new RecordedLog();
    // The beginning of an hour.
    let now = 1_699_920_000_000;
    const onRejected = rejectionWarnings(log, () => now);
    return (milliseconds: number, reason: string, caller: typeof peer | undefined = peer) => {
      now += milliseconds;
      onRejected(reason, caller);
      return log.lines.splice(0);
    };
  }

  it('has the reason and the peer, once per reason and hour; one call per second is examined', () => {
    const rejectAfter = watch();
    const level = 'warn';
    const message = 'calls are rejected without a decision';
    expect(rejectAfter(0, 'no domain')).toEqual([
      { level, message, fields: { reason: 'no domain', peer: '10.0.0.7:5123' } },
    ]);
    expect(rejectAfter(0, 'no descriptors')).toEqual([]);
    expect(rejectAfter(1000, 'no domain')).toEqual([]);
    expect(rejectAfter(1000, 'no descriptors', {} as typeof peer)).toMatchObject([{ fields: { peer: 'unix socket' } }]);
    expect(rejectAfter(3_600_000, 'no domain')).toHaveLength(1);
  });

  it('is short and rare, whatever callers send', () => {
    const rejectAfter = watch();
    const lines = Array.from({ length: 3000 }, (_, index) => rejectAfter(1000, `${index}${'x'.repeat(5000)}`)).flat();
    // Five per minute, and 100 in the hour.
    expect(lines).toHaveLength(100);
    for (const { fields } of lines) expect(String(fields['reason']).length).toBeLessThan(300);
  });
});

/** Lines whose output accepts a text when the test does. */
function bounded(options: BoundedLinesOptions = {}) {
  const texts: string[] = [];
  let accepted: ((error?: Error | null) => void) | undefined;
  function write(text: string, done: typeof accepted): void {
    texts.push(text);
    accepted = done;
  }
  const lines = new BoundedLines({ write }, options);
  const [counted, resumed]: [number[], number[]] = [[], []];
  lines.onDropped((count) => counted.push(count));
  lines.onResumed((count) => resumed.push(count));
  function fill(count: number, line = 'line') {
    for (let index = 0; index < count; index += 1) lines.write(`${line} ${index}\n`);
  }
  /** `texts` have been passed to the output. */
  return { lines, texts, counted, resumed, fill, accept: (error?: Error) => accepted?.(error) };
}

describe('lines on their way to an output', () => {
  it('are written at once when nothing waits, and then together, in pieces of at most 64 KiB', () => {
    const output = bounded();
    output.fill(3);
    expect(output.texts).toEqual(['line 0\n']);
    output.accept();
    expect(output.texts).toEqual(['line 0\n', 'line 1\nline 2\n']);
    output.fill(3, 'x'.repeat(40_000));
    for (let piece = 0; piece < 4; piece += 1) output.accept();
    expect(output.texts.map(({ length }) => length)).toEqual([7, 14, 40_003, 40_003, 40_003]);
  });

  it('are dropped and counted while those that wait have the maximum size, in bytes', () => {
    const output = bounded({ maxWaiting: 20 });
    for (const line of ['äöü äöü\n', '1234\n', '123\n']) output.lines.write(line);
    expect(output.counted).toEqual([1]);
    output.accept();
    output.accept();
    expect(output.texts).toEqual(['äöü äöü\n', '1234\n']);
  });

  it('are dropped and counted when the output fails, and later lines are still written', () => {
    const output = bounded();
    output.fill(3);
    output.accept(new Error('EPIPE'));
    output.accept(new Error('EPIPE'));
    expect([output.counted, output.resumed]).toEqual([[1, 2], []]);
    output.lines.write('later\n');
    output.accept();
    expect(output.texts.at(-1)).toBe('later\n');
    expect(output.resumed).toEqual([3]);
  });

  it('are reported as dropped once, in a line among them, when half of the space is free again', () => {
    const output = bounded({ maxWaiting: 100_000 });
    output.lines.onResumed((count) => output.lines.write(`lost ${count}\n`));
    output.fill(5, 'x'.repeat(30_000));
    expect(output.counted).toEqual([1, 1]);
    output.accept();
    expect(output.texts.join('')).not.toContain('lost');
    for (let piece = 0; piece < 3; piece += 1) output.accept();
    expect(output.texts.join('')).toMatch(/ 2\nlost 2\n$/);
  });
});

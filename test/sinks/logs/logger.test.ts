import { LOG_LEVELS, type LoggerOptions, createLogger } from '../../../src/sinks/logs/logger';
import { DecisionError } from '../../../src/limiter/decision-error';

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
  return lines[0]!.replace(new RegExp(`^time="${RFC_3339.source}" `), '');
}

describe('a text log line', () => {
  it('consists of time, level and message, and ends with a line feed', () => {
    const { lines, log } = recorded();
    log.info('rules loaded');
    expect(lines[0]).toMatch(new RegExp(`^time="${RFC_3339.source}" level=info msg="rules loaded"\n$`));
  });

  it.each([
    ['debug', 'debug'],
    ['info', 'info'],
    ['warn', 'warning'],
    ['error', 'error'],
    ['fatal', 'fatal'],
  ] as const)('written with %s has the level %s', (method, level) => {
    expect(textOf((log) => log[method]('x'))).toBe(`level=${level} msg="x"\n`);
  });

  it('has its fields after the message, quoted only where necessary', () => {
    const fields = { file: 'a.yaml', count: 3, ok: true, empty: '', reason: 'a "b" c=d', path: 'C:\\x', none: null };
    expect(textOf((log) => log.info('x', fields))).toBe(
      'level=info msg="x" file=a.yaml count=3 ok=true empty="" reason="a \\"b\\" c=d" path="C:\\\\x" none=null\n',
    );
  });

  it('omits undefined fields', () => {
    expect(textOf((log) => log.info('x', { gone: undefined }))).toBe('level=info msg="x"\n');
  });

  it('stays one line for any text', () => {
    const hostile = 'a\nlevel=fatal msg="forged"\r\u001b[31m\u009b\u2028';
    const line = textOf((log) => log.warn(hostile, { 'bad key\n=': hostile }));
    const quoted = String.raw`"a\nlevel=fatal msg=\"forged\"\r\u001b[31m\u009b\u2028"`;
    expect(line).toBe(`level=warning msg=${quoted} bad_key__=${quoted}\n`);
  });
});

describe('a JSON log line', () => {
  it('is an object with level, time, message and fields', () => {
    const { lines, log } = recorded({ format: 'json' });
    log.warn('store is "unreachable"', { attempt: 2 });
    expect(JSON.parse(lines[0]!)).toEqual({
      level: 'warning',
      '@timestamp': expect.stringMatching(RFC_3339),
      '@message': 'store is "unreachable"',
      attempt: 2,
    });
    expect(lines[0]).toMatch(/\}\n$/);
  });

  it('renames fields that have the names of its own members', () => {
    const { lines, log } = recorded({ format: 'json' });
    log.info('x', { level: 'y', '@message': 'z' });
    expect(JSON.parse(lines[0]!)).toMatchObject({ level: 'info', '@message': 'x', level_: 'y', '@message_': 'z' });
  });
});

describe('a logged error', () => {
  it('is written as its message and those of its causes', () => {
    const error = new DecisionError('store_failed', 'the store failed', { cause: new Error('connect ECONNREFUSED') });
    expect(textOf((log) => log.error('x', { error }))).toBe(
      'level=error msg="x" error="the store failed: connect ECONNREFUSED"\n',
    );
  });

  it('includes its stack when it is an internal error', () => {
    expect(textOf((log) => log.error('x', { error: new TypeError('oops') }))).toMatch(
      /error="TypeError: oops\\n {4}at .*logger\.test\.ts/,
    );
  });

  it('lists the errors of an aggregate without a message', () => {
    const error = new AggregateError([new Error('no v6'), new Error('no v4')]);
    expect(textOf((log) => log.error('x', { error }))).toContain('error="Error: no v6; Error: no v4"');
  });

  it('is written in finite length when it is its own cause', () => {
    const error = new Error('loop');
    error.cause = error;
    expect(textOf((log) => log.error('x', { error }))).toMatch(/error=loop\n$/);
  });
});

describe('log levels', () => {
  it.each(LOG_LEVELS.map((level, index) => [level, LOG_LEVELS.length - index] as const))(
    'from %s on: %i of the five are written',
    (level, written) => {
      const { lines, log } = recorded({ level });
      for (const method of ['debug', 'info', 'warn', 'error', 'fatal'] as const) log[method]('x');
      expect(lines).toHaveLength(written);
      expect(log.isDebug).toBe(level === 'debug');
    },
  );

  it.each([
    ['debug', 1],
    ['info', 1],
    ['warning', 1],
    ['error', 0],
    ['fatal', 0],
  ] as const)('from %s on: notices are written %i times, with the level info', (level, written) => {
    const { lines, log } = recorded({ level });
    log.notice('serving');
    expect(lines.filter((line) => line.endsWith(' level=info msg="serving"\n'))).toHaveLength(written);
  });
});

describe('credentials', () => {
  it.each(['text', 'json'] as const)('never appear in a %s line, wherever they are passed', (format) => {
    const { lines, log } = recorded({ format });
    const url = 'redis://user:hunter2@host';
    const cause = new Error(`refused by ${url}`);
    log.error(url, { url, error: new Error(url, { cause }), password: 'hunter2', auth: 'hunter2', token: 'hunter2' });
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain('hunter2');
    expect(lines[0]).toContain('redis://***@host');
  });
});

describe('a text that is too long', () => {
  const text = 'x'.repeat(1024 * 1024);

  it.each(['text', 'json'] as const)('is cut off in a %s line, which says so and is complete', (format) => {
    const { lines, log } = recorded({ format });
    log.debug(text, { value: text, error: new Error(text), after: 'after' });
    expect(lines).toHaveLength(1);
    expect(lines[0]!.length).toBeLessThan(256 * 1024);
    const short = lines[0]!.replaceAll('x'.repeat(64 * 1024), 'X');
    expect(short.match(/X… \(cut off; 1048576 characters in all\)"/g)).toHaveLength(3);
    if (format === 'text') expect(short).toMatch(/ after=after\n$/);
    else expect(JSON.parse(short)).toMatchObject({ after: 'after' });
  });

  it('contains no part of a secret at the place where it is cut off', () => {
    const { lines, log } = recorded({ mask: (masked) => masked.replaceAll('hunter2', '***') });
    for (let before = 65_520; before <= 65_540; before += 1) log.error(`${'x'.repeat(before)}hunter2${text}`);
    const ends = lines.map((line) => /x([^x]*)… /.exec(line)?.[1]);
    expect(new Set(ends)).toEqual(new Set(['', '*', '**', '***']));
  });
});

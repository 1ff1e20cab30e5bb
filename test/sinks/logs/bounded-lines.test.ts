import { BoundedLines, type BoundedLinesOptions } from '../../../src/sinks/logs/bounded-lines';

type Done = (error?: Error | null) => void;

/** Lines whose output accepts a text when the test does. */
function bounded(options: BoundedLinesOptions = {}) {
  const written: { readonly text: string; readonly done: Done }[] = [];
  const lines = new BoundedLines({ write: (text, done) => void written.push({ text, done }) }, options);
  const counted: number[] = [];
  const resumed: number[] = [];
  lines.onDropped((count) => counted.push(count));
  lines.onResumed((count) => resumed.push(count));
  return {
    lines,
    counted,
    resumed,
    /** What has been passed to the output. */
    get text() {
      return written.map(({ text }) => text).join('');
    },
    get writes() {
      return written.length;
    },
    accept: (error?: Error) => written.at(-1)?.done(error),
  };
}

function fill(lines: BoundedLines, count: number): void {
  for (let index = 0; index < count; index += 1) lines.write(`line ${index}\n`);
}

describe('lines on their way to an output', () => {
  it('are written at once when nothing waits, and together when they have waited', () => {
    const output = bounded();
    fill(output.lines, 3);
    expect(output.text).toBe('line 0\n');
    output.accept();
    expect(output.text).toBe('line 0\nline 1\nline 2\n');
    output.accept();
    expect(output.writes).toBe(2);
  });

  it('are passed on in pieces of at most 64 KiB', () => {
    const output = bounded();
    const line = `${'x'.repeat(40_000)}\n`;
    for (let count = 0; count < 3; count += 1) output.lines.write(line);
    output.accept();
    expect(output.text).toHaveLength(2 * line.length);
    output.accept();
    expect(output.text).toHaveLength(3 * line.length);
  });

  it('are dropped and counted while those that wait have the maximum size, in bytes', () => {
    const output = bounded({ maxWaiting: 20 });
    output.lines.write('äöü äöü\n');
    output.lines.write('1234\n');
    output.lines.write('123\n');
    expect(output.counted).toEqual([1]);
    output.accept();
    output.accept();
    expect(output.text).toBe('äöü äöü\n1234\n');
  });

  it('are dropped and counted when the output fails, and later lines are still written', () => {
    const output = bounded();
    fill(output.lines, 3);
    output.accept(new Error('EPIPE'));
    output.accept(new Error('EPIPE'));
    expect(output.counted).toEqual([1, 2]);
    expect(output.resumed).toEqual([]);
    output.lines.write('later\n');
    output.accept();
    expect(output.text).toMatch(/later\n$/);
    expect(output.resumed).toEqual([3]);
  });

  it('are reported as dropped once, when half of the space is free again', () => {
    const output = bounded({ maxWaiting: 100_000 });
    const line = `${'x'.repeat(30_000)}\n`;
    for (let count = 0; count < 5; count += 1) output.lines.write(line);
    expect(output.counted).toEqual([1, 1]);
    output.accept();
    expect(output.resumed).toEqual([]);
    output.accept();
    expect(output.resumed).toEqual([2]);
    output.accept();
    expect(output.resumed).toEqual([2]);
  });

  it('include the one that reports dropped lines', () => {
    const output = bounded({ maxWaiting: 20 });
    output.lines.onResumed((count) => output.lines.write(`lost ${count}\n`));
    fill(output.lines, 5);
    for (let count = 0; count < 3; count += 1) output.accept();
    expect(output.text).toBe('line 0\nline 1\nlost 3\n');
  });

  it('that were dropped before there was a listener are counted when there is one', () => {
    const lines = new BoundedLines({ write: () => undefined }, { maxWaiting: 10 });
    fill(lines, 4);
    const counted: number[] = [];
    lines.onDropped((count) => counted.push(count));
    lines.write('one more\n');
    expect(counted).toEqual([3, 1]);
  });
});

describe('a flush', () => {
  it('ends when the output has accepted every line', async () => {
    const output = bounded();
    await output.lines.flush();
    fill(output.lines, 2);
    let isOver = false;
    const flushed = output.lines.flush().then(() => (isOver = true));
    output.accept();
    await Promise.resolve();
    expect(isOver).toBe(false);
    output.accept();
    await flushed;
  });

  it('ends after its timeout when the output is blocked', async () => {
    const { lines, text } = bounded({ flushTimeout: 10 });
    fill(lines, 2);
    await lines.flush();
    expect(text).not.toContain('line 1');
  });
});

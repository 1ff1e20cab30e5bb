import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NamedPipe } from '../support/processes/named-pipe';
import { until } from '../support/waiting/until';

const HOOK = join(__dirname, '../support/processes/typescript-hook.cjs');
const SOURCES = join(__dirname, '../../src/sinks');
/** More than the buffers of a pipe, a socket and a stream of Node can hold. */
const LINES = 12_000;

/** A program that writes lines to standard error, or another stream, and ends with code 3 after flushing them. */
function program({ stream = 2, before = '', after = '' } = {}): readonly string[] {
  const script = `
    const { standardStream } = require(${JSON.stringify(join(SOURCES, 'standard-stream.ts'))});
    const { BoundedLines } = require(${JSON.stringify(join(SOURCES, 'logs/bounded-lines.ts'))});
    ${before}
    const lines = new BoundedLines(standardStream(${stream}), { flushTimeout: Number(process.env.FLUSH_TIMEOUT ?? 60_000) });
    for (let line = 0; line < ${LINES}; line += 1) lines.write('this is line number ' + line + ' of those to write\\n');
    ${after}
    void lines.flush().then(() => process.exit(3));`;
  return [process.execPath, '--require', HOOK, '-e', script];
}

/** The program as a command of the shell, which puts its exit code into a file. */
function shellCommand(file: string): string {
  const words = program().map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`);
  return `{ ${words.join(' ')}; echo $? > '${file}'; }`;
}

function expectEveryLine(text: string): void {
  const numbers = [...text.matchAll(/^this is line number (\d+) of those to write\r?$/gm)].map(([, number]) =>
    Number(number),
  );
  expect(numbers).toEqual(Array.from({ length: LINES }, (_, number) => number));
}

let folder: string;
let codeFile: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'weir-standard-stream-'));
  codeFile = join(folder, 'code');
});
afterEach(() => rm(folder, { recursive: true }));

function exitCode(): Promise<string> {
  return until('the program has ended', () => existsSync(codeFile) && (readFileSync(codeFile, 'utf8').trim() || false));
}

describe('a standard stream accepts every line before the process exits', () => {
  it('when it is a socket', () => {
    const [command = '', ...args] = program();
    const { stderr, status } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 24 });
    expectEveryLine(stderr);
    expect(status).toBe(3);
  });

  it('when it is a pipe', async () => {
    const { stdout } = spawnSync('sh', ['-c', `${shellCommand(codeFile)} 2>&1 | cat`], {
      encoding: 'utf8',
      maxBuffer: 2 ** 24,
    });
    expectEveryLine(stdout);
    expect(await exitCode()).toBe('3');
  });

  it('when it is a file, to which another process also appends', () => {
    const file = join(folder, 'log');
    const descriptor = openSync(file, 'w');
    spawnSync('sh', ['-c', 'echo before >&2'], { stdio: ['ignore', 'ignore', descriptor] });
    const [command = '', ...args] = program();
    const { status } = spawnSync(command, args, { stdio: ['ignore', 'ignore', descriptor] });
    spawnSync('sh', ['-c', 'echo after >&2'], { stdio: ['ignore', 'ignore', descriptor] });
    closeSync(descriptor);
    const text = readFileSync(file, 'utf8');
    expectEveryLine(text);
    expect(text).toMatch(/^before\n[^]*\nafter\n$/);
    expect(status).toBe(3);
  });

  it('when it is a terminal', async () => {
    const terminal = ['-q', '-e', '-c', shellCommand(codeFile), '/dev/null'];
    const { stdout } = spawnSync('script', terminal, { encoding: 'utf8', maxBuffer: 2 ** 24 });
    expectEveryLine(stdout);
    expect(await exitCode()).toBe('3');
  });
});

describe('a standard stream does not prevent the process from ending', () => {
  it.each(['2>/dev/null', '2>/dev/full', '2>&-'])('with %s', async (redirection) => {
    const { status } = spawnSync('sh', ['-c', `${shellCommand(codeFile)} ${redirection}`]);
    expect(status).toBe(0);
    expect(await exitCode()).toBe('3');
  });

  it('when its descriptor is closed later', () => {
    const [command = '', ...args] = program({ before: `require('node:fs').closeSync(2);` });
    expect(spawnSync(command, args).status).toBe(3);
  });

  it('when the reader of a pipe has closed it', async () => {
    using pipe = new NamedPipe();
    pipe.closeReader();
    const [command = '', ...args] = program();
    expect(spawnSync(command, args, { stdio: ['ignore', 'ignore', pipe.writer] }).status).toBe(3);
  });
});

describe('a standard stream that is not read does not prevent the process from ending', () => {
  const env = { ...process.env, FLUSH_TIMEOUT: '100' };

  it('when it is a pipe', async () => {
    using pipe = new NamedPipe();
    const [command = '', ...args] = program();
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', pipe.writer], env });
    const [code] = await once(child, 'exit');
    expect(code).toBe(3);
    pipe.read();
    await until('what it accepted is read', () => pipe.text.length > 60_000);
    expect(pipe.text).toMatch(/^this is line number 0 of those to write\n/);
  });

  it('when it is a socket', async () => {
    const [command = '', ...args] = program();
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
    const [code] = await once(child, 'exit');
    expect(code).toBe(3);
  });

  it('when it is a terminal', async () => {
    const child = spawn('script', ['-q', '-e', '-c', shellCommand(codeFile), '/dev/null'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env,
    });
    try {
      // The key Ctrl+S stops the output of the terminal.
      child.stdin.write('\u0013');
      expect(await exitCode()).toBe('3');
    } finally {
      const ended = once(child, 'close');
      child.kill('SIGKILL');
      child.stdout.resume();
      await ended;
    }
  });
});

// Node makes the pipe of standard error non-blocking itself, when a library looks at `process.stderr`.
test('standard output that is a pipe stays blocking for other processes', async () => {
  using pipe = new NamedPipe();
  const [command = '', ...args] = program({ stream: 1, after: `require('node:fs').writeSync(2, 'written');` });
  const child = spawn(command, args, { stdio: ['ignore', pipe.writer, 'pipe'] });
  await once(child.stderr!, 'data');
  expect(pipe.isBlocking).toBe(true);
  pipe.read();
  const [code] = await once(child, 'exit');
  expect(code).toBe(3);
  await until('everything is read', () => pipe.text.includes(`number ${LINES - 1} `));
  expectEveryLine(pipe.text);
});

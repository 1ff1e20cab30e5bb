import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppendedFile } from '../../src/sinks/text-outputs';
import { NamedPipe } from '../support/processes/named-pipe';
import { SocketFolder, UnixReceiver } from '../support/servers/unix-stream-receiver';
import { until } from '../support/waiting/until';
import { TemporaryFolder } from '../support/data/temporary-folder';

let folder: TemporaryFolder;
beforeEach(() => {
  folder = new TemporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

const HOOK = join(__dirname, '../support/processes/typescript-hook.cjs');
const SOURCES = join(__dirname, '../../src/sinks');
/** More than the buffers of a pipe, a socket and a stream of Node can hold. */
const LINES = 12_000;

/**
 * A program that writes lines to a standard stream, and exits with code 3 after flushing them, or after FLUSH_TIMEOUT.
 *
 * @param before code that runs before the lines are written @param after the same, after
 */
function writingProgram({ stream = 2, before = '', after = '' } = {}): readonly [string, string[]] {
  const script = `
    const { standardStream } = require(${JSON.stringify(join(SOURCES, 'text-outputs.ts'))});
    const { BoundedLines } = require(${JSON.stringify(join(SOURCES, 'logs/bounded-lines.ts'))});
    ${before}
    const lines = new BoundedLines(standardStream(${stream}), { flushTimeout: Number(process.env.FLUSH_TIMEOUT ?? 600_000) });
    for (let line = 0; line < ${LINES}; line += 1) lines.write('this is line number ' + line + ' of those to write\\n');
    ${after}
    void lines.flush().then(() => process.exit(3));`;
  return [process.execPath, ['--require', HOOK, '-e', script]];
}

/** The environment of a program that does not wait long for its output. */
const IMPATIENT = { ...process.env, FLUSH_TIMEOUT: '100' };

/** Runs a program to its end. @returns its exit code and what it wrote to the pipes of `stdio` */
async function run([command, args]: readonly [string, string[]], options: SpawnOptions) {
  const child: ChildProcess = spawn(command, args, { timeout: 100_000, ...options });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (more) => (text += more));
  const [code]: unknown[] = await once(child, 'close');
  return { code, text };
}

/** The program as a command of the shell, which puts its exit code into a file. */
function shellCommand(): string {
  const [program, args] = writingProgram();
  const words = [program, ...args].map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`);
  return `{ ${words.join(' ')}; echo $? > '${folder.at('code')}'; }`;
}

/** Arguments of `script` for the same in a terminal. */
function inTerminal() {
  return ['-q', '-e', '-c', shellCommand(), '/dev/null'];
}

/** The exit code of the program in the shell. */
function exitCode(): Promise<string> {
  const file = folder.at('code');
  return until('the program has ended', () => existsSync(file) && (readFileSync(file, 'utf8').trim() || false));
}

function expectEveryLine(text: string): void {
  const lines = text.matchAll(/^this is line number (\d+) of those to write\r?$/gm);
  expect(Array.from(lines, ([, number]) => Number(number))).toEqual(Array.from({ length: LINES }, (_, line) => line));
}

describe('a standard stream', () => {
  // Node makes the pipe of standard error non-blocking itself, when a library looks at `process.stderr`.
  it('that is a pipe accepts every line before the process exits, and stays blocking for other processes', async () => {
    using pipe = new NamedPipe();
    const [command, args] = writingProgram({ stream: 1, after: `require('node:fs').writeSync(2, 'written');` });
    const child = spawn(command, args, { stdio: ['ignore', pipe.writer, 'pipe'] });
    await once(child.stderr!, 'data');
    expect(pipe.isBlocking).toBe(true);
    pipe.read();
    expect(await once(child, 'exit')).toEqual([3, null]);
    await until('everything is read', () => pipe.text.includes(`number 11999 `));
    expectEveryLine(pipe.text);
  });
});

describe('a standard stream accepts every line before the process exits', () => {
  it('when it is a socket', async () => {
    const { code, text } = await run(writingProgram(), { stdio: ['ignore', 'ignore', 'pipe'] });
    expectEveryLine(text);
    expect(code).toBe(3);
  });

  it('when it is a file, to which another process also appends', async () => {
    const file = folder.at('log');
    const script = `{ echo before >&2; ${shellCommand()}; echo after >&2; } 2> '${file}'`;
    expect((await run(['sh', ['-c', script]], { stdio: 'ignore' })).code).toBe(0);
    expect(await exitCode()).toBe('3');
    const text = readFileSync(file, 'utf8');
    expectEveryLine(text);
    expect(text).toMatch(/^before\n[^]*\nafter\n$/);
  });

  it('when it is a terminal', async () => {
    const { text } = await run(['script', inTerminal()], { stdio: ['ignore', 'pipe', 'ignore'] });
    expectEveryLine(text);
    expect(await exitCode()).toBe('3');
  });
});

describe('a standard stream does not prevent the process from ending', () => {
  it.each(['2>/dev/null', '2>/dev/full', '2>&-'])('with %s', async (redirection) => {
    expect(spawnSync('sh', ['-c', `${shellCommand()} ${redirection}`]).status).toBe(0);
    expect(await exitCode()).toBe('3');
  });

  it('when its descriptor is closed later', async () => {
    const program = writingProgram({ before: `require('node:fs').closeSync(2);` });
    expect((await run(program, { stdio: 'pipe' })).code).toBe(3);
  });

  it('when it is a socket or pipe that is not read, or a pipe without a reader', async () => {
    using unread = new NamedPipe();
    using closed = new NamedPipe();
    closed.closeReader();
    const [command, args] = writingProgram();
    for (const [output, env] of [
      ['pipe', IMPATIENT],
      [unread.writer, IMPATIENT],
      // A failed write ends the wait.
      [closed.writer, process.env],
    ] as const) {
      const child = spawn(command, args, { stdio: ['ignore', 'ignore', output], env, timeout: 100_000 });
      expect(await once(child, 'exit')).toEqual([3, null]);
    }
    unread.read();
    await until('what it accepted is read', () => unread.text.length > 60_000);
    expect(unread.text).toMatch(/^this is line number 0 of those to write\n/);
  });

  it('when it is a terminal that is not read', async () => {
    const child = spawn('script', inTerminal(), { stdio: ['pipe', 'pipe', 'ignore'], env: IMPATIENT });
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

describe('a file to which texts are appended', () => {
  let path: string;
  const opened: AppendedFile[] = [];
  beforeEach(() => {
    path = folder.at('decisions.json');
  });
  afterEach(async () => {
    for (const file of opened.splice(0)) await file.close();
  });

  async function open(at = path): Promise<AppendedFile> {
    const file = await AppendedFile.open(at);
    opened.push(file);
    return file;
  }
  /** Writes a text. @returns the code of the error that prevented it */
  function write(file: AppendedFile, text: string): Promise<string | undefined> {
    return new Promise((resolve) =>
      file.write(text, (error) => resolve((error as NodeJS.ErrnoException | null)?.code)),
    );
  }

  it('keeps what it contains, and is created if it does not exist', async () => {
    await write(await open(), 'one\n');
    await write(await open(), 'two\n');
    expect(await readFile(path, 'utf8')).toBe('one\ntwo\n');
    expect((await stat(path)).mode & 0o007).toBe(0);
  });

  it('is created again after it was renamed', async () => {
    const file = await open();
    await write(file, 'one\n');
    await rename(path, `${path}.1`);
    await until('the new file', async () => {
      await write(file, 'two\n');
      return (await readFile(path, 'utf8').catch(() => '')) === 'two\n';
    });
    expect(await readFile(`${path}.1`, 'utf8')).toMatch(/^one\n/);
  });

  it('reports an error while it cannot be created again, and recovers', async () => {
    const file = await open();
    await rename(folder.base, `${folder.base}-moved`);
    await until('an error', async () => (await write(file, 'lost\n')) === 'ENOENT');
    await rename(`${folder.base}-moved`, folder.base);
    await until('a write', async () => (await write(file, 'kept\n')) === undefined);
    expect(await readFile(path, 'utf8')).toMatch(/kept\n$/);
  });

  it('may be a named pipe, which is not waited for when it has no reader', async () => {
    using pipe = new NamedPipe();
    await write(await open(pipe.path), 'one\n');
    pipe.read();
    await until('the text', () => pipe.text !== '');
    expect(pipe.text).toBe('one\n');
  });

  it('may be a named pipe that gets its reader later: what is written before that fails', async () => {
    using pipe = new NamedPipe();
    pipe.closeReader();
    const file = await open(pipe.path);
    expect(await write(file, 'lost\n')).toBe('ENXIO');
    const reader = openSync(pipe.path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      await until('a write', async () => (await write(file, 'kept\n')) === undefined);
      expect(readSync(reader, Buffer.alloc(100))).toBe(5);
    } finally {
      closeSync(reader);
    }
  });

  it('is rejected when it cannot be opened', async () => {
    await writeFile(path, '');
    await expect(AppendedFile.open(join(path, 'below-a-file'))).rejects.toThrow('ENOTDIR');
    using sockets = new SocketFolder();
    await using _ = await UnixReceiver.start(sockets.path);
    await expect(AppendedFile.open(sockets.path)).rejects.toThrow('ENXIO');
  });
});

import { constants, fstatSync, openSync, write } from 'node:fs';
import { type FileHandle, open as openFile, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { isatty } from 'node:tty';
import { asError } from '../text/thrown';

/** Accepts text without ever blocking the event loop. */
export interface TextOutput {
  /**
   * Never throws. Texts must be written one after the other, each when the one before is done.
   *
   * @param done called once, later: when the system has accepted the whole text, or with the error that prevented it
   */
  write(text: string, done: (error?: Error | null) => void): void;
}

/** Milliseconds after which a pipe that failed, or a file at a path, is opened again. */
const RETRY_INTERVAL = 1_000;

/**
 * Standard output or standard error, of any kind. `process.stdout` and `process.stderr` are not used: they block on
 * files and terminals, and keep any amount of text for a pipe that is not read.
 *
 * A pipe or terminal is opened again, because only then is its non-blocking mode private to this process. Where the
 * system does not allow that, and for sockets, the mode is that of all processes with the same open file, until this
 * one exits. A file, and a terminal that cannot be opened again, occupy a thread of Node's pool while they block, and
 * the process exits only after that.
 */
export function standardStream(descriptor: 1 | 2): TextOutput {
  const kind = kindOf(descriptor);
  if (kind === 'pipe') return pipeOutput(descriptor);
  const file = kind === 'terminal' ? openAgain(descriptor) : descriptor;
  return { write: (text, done) => writeAll(file, text, done) };
}

/** Sockets are written to as pipes are. */
function kindOf(descriptor: number): 'pipe' | 'terminal' | 'file' {
  if (isatty(descriptor)) return 'terminal';
  try {
    const status = fstatSync(descriptor);
    return status.isFIFO() || status.isSocket() ? 'pipe' : 'file';
  } catch {
    // Closed: each write reports it.
    return 'file';
  }
}

/** A non-blocking descriptor for the same pipe or terminal; the given one where there is none. */
function openAgain(descriptor: number): number {
  try {
    return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    // A socket, a pipe without a reader, a pipe or terminal of another user, or a system without /proc.
    return descriptor;
  }
}

/** A pipe or a socket. */
function pipeOutput(descriptor: number): TextOutput {
  let opened: Socket | undefined;
  let failure: { readonly error: Error; readonly at: number } | undefined;
  /** Tries again after an error, because a named pipe may have a new reader. */
  function open(): Socket {
    if (opened !== undefined) return opened;
    if (failure !== undefined && performance.now() < failure.at + RETRY_INTERVAL) throw failure.error;
    const socket = new Socket({ fd: openAgain(descriptor), readable: false, writable: true });
    // Registered for the lifetime of the socket: an error must not end the process.
    socket.on('error', (error) => {
      opened = undefined;
      failure = { error, at: performance.now() };
    });
    opened = socket;
    return socket;
  }
  return {
    write: (text, done) => {
      try {
        open().write(text, done);
      } catch (error) {
        setImmediate(done, asError(error));
      }
    },
  };
}

/** Milliseconds after which a descriptor that accepts nothing at present is tried again. */
const FULL_INTERVAL = 50;

/**
 * Writes a whole text to a descriptor, without blocking the event loop. `done` is called once, later, with the error if
 * there is one.
 */
function writeAll(descriptor: number, text: string | Buffer, done: (error?: Error | null) => void): void {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  write(descriptor, bytes, (error, written) => {
    if (error?.code === 'EAGAIN') setTimeout(() => writeAll(descriptor, bytes, done), FULL_INTERVAL);
    else if (error !== null || written === bytes.length) done(error);
    else writeAll(descriptor, bytes.subarray(written), done);
  });
}

/** Non-blocking, for a named pipe: without a reader it cannot be opened, instead of being waited for. */
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;
const MODE = 0o640;

/**
 * A file to which texts are appended. One that was renamed or removed, by log rotation, is created again within a
 * second; a named pipe without a reader is opened when there is one.
 */
export class AppendedFile implements TextOutput {
  readonly #path: string;
  #file: FileHandle | undefined;
  /** Why there is no file. */
  #failure: Error | undefined;
  /** When it was last checked whether the file is still the one at its path. */
  #checkedAt = Number.NEGATIVE_INFINITY;

  private constructor(path: string) {
    this.#path = path;
  }

  /** @throws when the file cannot be opened, unless it is a named pipe without a reader */
  static async open(path: string): Promise<AppendedFile> {
    const file = new AppendedFile(path);
    try {
      await file.#current();
    } catch (error) {
      if (!(Object(error).code === 'ENXIO' && (await stat(path)).isFIFO())) throw error;
    }
    return file;
  }

  write(text: string, done: (error?: Error | null) => void): void {
    this.#current().then(
      ({ fd }) => writeAll(fd, text, done),
      (error: unknown) => done(asError(error)),
    );
  }

  /** To be called when no text is being written. */
  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  async #current(): Promise<FileHandle> {
    const now = performance.now();
    if (now < this.#checkedAt + RETRY_INTERVAL) {
      if (this.#file === undefined) throw this.#failure!;
      return this.#file;
    }
    this.#checkedAt = now;
    if (this.#file !== undefined && !(await isAt(this.#path, this.#file))) await this.close();
    try {
      return (this.#file ??= await openFile(this.#path, FLAGS, MODE));
    } catch (error) {
      this.#failure = asError(error);
      throw error;
    }
  }
}

async function isAt(path: string, file: FileHandle): Promise<boolean> {
  try {
    const [there, opened] = await Promise.all([stat(path), file.stat()]);
    return there.ino === opened.ino && there.dev === opened.dev;
  } catch {
    return false;
  }
}

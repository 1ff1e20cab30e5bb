import { type FileHandle, open, stat } from 'node:fs/promises';
import { constants } from 'node:fs';
import { asError } from '../text/thrown';
import type { TextOutput } from './standard-stream';
import { writeAll } from './write-all';

/** Milliseconds after which it is checked whether the file is still the one at its path. */
const CHECK_INTERVAL = 1_000;
/** Non-blocking, for a named pipe: without a reader it cannot be opened, instead of being waited for. */
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;
const MODE = 0o640;

/** A file to which texts are appended. One that was renamed or removed, by log rotation, is created again within a second. */
export class AppendedFile implements TextOutput {
  readonly #path: string;
  #file: FileHandle | undefined;
  #checkedAt = 0;

  private constructor(path: string) {
    this.#path = path;
  }

  /** @throws when the file cannot be opened */
  static async open(path: string): Promise<AppendedFile> {
    const file = new AppendedFile(path);
    await file.#current();
    return file;
  }

  write(text: string, done: (error?: Error | null) => void): void {
    this.#current().then(
      ({ fd }) => writeAll(fd, Buffer.from(text), done),
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
    if (this.#file !== undefined && now < this.#checkedAt + CHECK_INTERVAL) return this.#file;
    this.#checkedAt = now;
    if (this.#file !== undefined && !(await isAt(this.#path, this.#file))) {
      await this.close();
    }
    this.#file ??= await open(this.#path, FLAGS, MODE);
    return this.#file;
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

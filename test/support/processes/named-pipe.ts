import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { TemporaryFolder } from '../data/temporary-folder';

/** A pipe for the output of a process. What is written stays in it until it is read. */
export class NamedPipe implements Disposable {
  readonly #folder = new TemporaryFolder();
  readonly #reader: Socket;
  readonly #read: Buffer[] = [];
  readonly path = this.#folder.at('pipe');
  /** The descriptor to start a process with. */
  readonly writer: number;

  constructor() {
    const { path } = this;
    execFileSync('mkfifo', [path]);
    // In this order, because a pipe without a reader cannot be opened for writing.
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    this.writer = openSync(path, constants.O_WRONLY);
    this.#reader = new Socket({ fd: reader, readable: true, writable: false });
    this.#reader.pause().on('data', (bytes: Buffer) => this.#read.push(bytes));
  }

  /** Begins to read. */
  read(): void {
    this.#reader.resume();
  }

  /** What has been read. */
  get text(): string {
    return Buffer.concat(this.#read).toString();
  }

  /** Whether writing to the descriptor blocks. */
  get isBlocking(): boolean {
    const [, flags = ''] = /flags:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${this.writer}`, 'utf8')) ?? [];
    return (Number.parseInt(flags, 8) & constants.O_NONBLOCK) === 0;
  }

  /** Writes until the pipe accepts nothing more. */
  fill(): void {
    const descriptor = openSync(this.path, constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      for (;;) writeSync(descriptor, '\n');
    } catch {
      // It is full.
    } finally {
      closeSync(descriptor);
    }
  }

  /** Closes the end that reads: further writes fail, unless another process reads. */
  closeReader(): void {
    this.#reader.destroy();
  }

  [Symbol.dispose](): void {
    this.#reader.destroy();
    closeSync(this.writer);
    this.#folder[Symbol.dispose]();
  }
}

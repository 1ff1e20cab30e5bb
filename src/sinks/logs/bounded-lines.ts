import type { TextOutput } from '../text-outputs';
import type { LogStream } from './logger';

const DEFAULTS = {
  /**
   * Bytes of lines that wait for their output, in UTF-8. A log line has at least 40, so that this limits their number
   * too.
   */
  maxWaiting: 1024 * 1024,
  /** Bytes of several lines that are written at once: the capacity of a pipe on Linux. */
  maxWrite: 64 * 1024,
  /** Milliseconds that {@link BoundedLines.flush} waits at most. */
  flushTimeout: 2_000,
};

export type BoundedLinesOptions = Partial<typeof DEFAULTS>;

/** Lines that are written together. */
interface Chunk {
  text: string;
  lines: number;
  bytes: number;
}

/**
 * Log lines on their way to an output that may be slow or blocked. Lines wait in bounded space; those that find no
 * space are dropped and counted, as are those that the output does not accept because of an error.
 */
export class BoundedLines implements LogStream {
  readonly #output: TextOutput;
  readonly #options: typeof DEFAULTS;
  readonly #chunks: Chunk[] = [];
  /** Bytes that the output has not accepted yet, including those in flight. */
  #bytes = 0;
  #isWriting = false;
  #dropped = 0;
  /** How many of the dropped lines {@link onResumed} has reported. */
  #reported = 0;
  #onDropped: (lines: number) => void = () => undefined;
  #onResumed: (lines: number) => void = () => undefined;
  #onFlushed: () => void = () => undefined;

  constructor(output: TextOutput, options: BoundedLinesOptions = {}) {
    this.#output = output;
    this.#options = { ...DEFAULTS, ...options };
  }

  /** @param line complete, with its line feed */
  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#bytes + bytes > this.#options.maxWaiting) {
      this.#drop(1);
      return;
    }
    this.#bytes += bytes;
    const last = this.#chunks.at(-1);
    if (last === undefined || last.bytes + bytes > this.#options.maxWrite) {
      this.#chunks.push({ text: line, lines: 1, bytes });
    } else {
      last.text += line;
      last.lines += 1;
      last.bytes += bytes;
    }
    if (!this.#isWriting) this.#writeNext();
  }

  /** Writes a line that is built only if there is space for at least one byte. */
  writeBuilt(build: () => string): void {
    if (this.#bytes < this.#options.maxWaiting) this.write(build());
    else this.#drop(1);
  }

  /**
   * Calls the listener with the number of lines dropped so far, if there are any, and then with each further number.
   */
  onDropped(listener: (lines: number) => void): void {
    this.#onDropped = listener;
    if (this.#dropped > 0) listener(this.#dropped);
  }

  /**
   * Calls the listener with the number of dropped lines when the output accepts lines again and half of the space is
   * free.
   */
  onResumed(listener: (lines: number) => void): void {
    this.#onResumed = listener;
  }

  /**
   * Resolves when the output has accepted every line, but within 2 s: the process must end also when its log is
   * blocked.
   */
  async flush(): Promise<void> {
    if (!this.#isWriting) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#options.flushTimeout);
      this.#onFlushed = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #writeNext(): void {
    const chunk = this.#chunks.shift();
    this.#isWriting = chunk !== undefined;
    if (chunk === undefined) {
      this.#onFlushed();
      return;
    }
    this.#output.write(chunk.text, (error) => {
      this.#bytes -= chunk.bytes;
      if (error) this.#drop(chunk.lines);
      else this.#report();
      this.#writeNext();
    });
  }

  #drop(lines: number): void {
    this.#dropped += lines;
    this.#onDropped(lines);
  }

  #report(): void {
    const lines = this.#dropped - this.#reported;
    if (lines === 0 || this.#bytes > this.#options.maxWaiting / 2) return;
    this.#reported = this.#dropped;
    this.#onResumed(lines);
  }
}

import type { Writable } from 'node:stream';
import { newlineTerminated } from './framing';
import type { LineSender } from './line-sender';

/**
 * Writes lines to a stream that this process does not own, such as standard output. There is no timeout: a write cannot be
 * withdrawn, and repeating it would count the statistics twice.
 */
export class StreamSender implements LineSender {
  readonly #stream: Writable;
  #error: Error | undefined;
  readonly #onError = (error: Error): void => {
    this.#error = error;
  };

  constructor(
    readonly destination: string,
    stream: Writable,
  ) {
    this.#stream = stream;
    stream.on('error', this.#onError);
  }

  /** Rejects once the stream has failed. */
  async open(): Promise<void> {
    if (this.#error !== undefined) throw this.#error;
  }

  send(lines: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#stream.write(newlineTerminated(lines), (error) => (error ? reject(error) : resolve()));
    });
  }

  close(): void {
    // The stream stays open, and the error listener stays so that a late error does not end the process.
  }
}

import type { Writable } from 'node:stream';
import { endedLines } from './framing';
import type { LineSender } from './line-sender';

/**
 * Lines into a stream that is not ours, such as standard output. It waits as long as its reader does: what was written cannot
 * be taken back, and to send it again would count it twice.
 */
export class StreamSender implements LineSender {
  readonly #stream: Writable;
  #failure: Error | undefined;
  readonly #onError = (error: Error): void => {
    this.#failure = error;
  };

  constructor(
    readonly destination: string,
    stream: Writable,
  ) {
    this.#stream = stream;
    stream.on('error', this.#onError);
  }

  async open(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
  }

  send(lines: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#stream.write(endedLines(lines), (error) => (error ? reject(error) : resolve()));
    });
  }

  close(): void {
    // The stream, and the listener that keeps its late errors from ending the process, stay.
  }
}

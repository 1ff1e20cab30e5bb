import { Readable } from 'node:stream';

export interface AnswerStreamOptions {
  /** Called with the number of chunks that were consumed since the last call. */
  readonly onConsumed: (chunks: number) => void;
  /** Called once when nothing more will be read: after the end, a failure, or `destroy`. */
  readonly onClosed: () => void;
}

/** The chunks of an answer. To destroy it cancels the request. */
export class AnswerStream extends Readable {
  readonly #options: AnswerStreamOptions;
  #unacknowledged = 0;

  constructor(options: AnswerStreamOptions) {
    super();
    this.#options = options;
  }

  override _read(): void {
    const chunks = this.#unacknowledged;
    this.#unacknowledged = 0;
    if (chunks > 0) this.#options.onConsumed(chunks);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#options.onClosed();
    done(error);
  }

  arrived(chunk: Buffer): void {
    this.#unacknowledged += 1;
    this.push(chunk);
  }

  ended(): void {
    this.push(null);
  }
}

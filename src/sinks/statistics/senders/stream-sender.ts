import type { TextOutput } from '../../standard-stream';
import { newlineTerminated } from './framing';
import type { LineSender } from './line-sender';

/**
 * Writes lines to an output that is always open, such as standard output. There is no timeout: a write cannot be withdrawn, and
 * repeating it would count the statistics twice. While the output is blocked, a flush waits, and the statistics accumulate.
 */
export class StreamSender implements LineSender {
  readonly #output: TextOutput;

  constructor(
    readonly destination: string,
    output: TextOutput,
  ) {
    this.#output = output;
  }

  async open(): Promise<void> {
    // Each send reports whether the output accepts it.
  }

  send(lines: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#output.write(newlineTerminated(lines), (error) => (error ? reject(error) : resolve()));
    });
  }

  close(): void {
    // The output belongs to the process.
  }
}

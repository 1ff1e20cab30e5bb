import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

// The shell ends the program when its own standard input does: also when the test process is killed.
const KEEPER = 'exec 3<&0; "$@" </dev/null & cat <&3 >/dev/null; kill -9 $! 2>/dev/null; wait';

/** An external program that ends with the test, also when the test process is killed. */
export class KeptProcess {
  /** The lines it has written to standard output and standard error. */
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(command: readonly string[]) {
    this.#child = spawn('sh', ['-c', KEEPER, 'sh', ...command], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#ended = once(this.#child, 'close');
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream !== null) createInterface(stream).on('line', (line) => this.lines.push(line));
    }
  }

  /** Kills it, and waits until it has exited and everything it wrote has been read. */
  async crash(): Promise<void> {
    this.#child.stdin?.end();
    await this.#ended;
  }
}

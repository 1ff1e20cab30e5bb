import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

// The shell ends the program when its own standard input does: also when the test process is killed.
const KEEPER = 'exec 3<&0; "$@" </dev/null & echo "pid $!"; cat <&3 >/dev/null; kill -9 $! 2>/dev/null; wait';

/** An external program that ends with the test, also when the test process is killed. */
export class KeptProcess {
  /** The lines it has written to standard output and standard error. */
  readonly lines: string[] = [];
  /** The number of the process; 0 until it has started. */
  pid = 0;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(command: readonly string[], cwd?: string) {
    const child = spawn('sh', ['-c', KEEPER, 'sh', ...command], { cwd, stdio: 'pipe' });
    this.#child = child;
    this.#ended = once(child, 'close');
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (line) => {
        const pid = this.pid === 0 && /^pid (\d+)$/.exec(line)?.[1];
        if (typeof pid === 'string') this.pid = Number(pid);
        else this.lines.push(line);
      });
    }
  }

  /** Kills it, and waits until it has exited and everything it wrote has been read. */
  async crash(): Promise<void> {
    this.#child.stdin?.end();
    await this.#ended;
  }
}

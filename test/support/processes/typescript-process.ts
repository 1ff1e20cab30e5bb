import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const DEADLINE = 60_000;

/**
 * A separate process that runs a TypeScript module of the tests, for tests that need to signal or wrap a process. It reports in
 * lines on standard output.
 */
export class TypeScriptProcess {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #ended: Promise<unknown[]>;

  /** @param wrapper a program and its arguments that starts Node, such as `unshare -Ur` */
  constructor(module: string, args: readonly string[], wrapper: readonly string[] = []) {
    const [program = process.execPath, ...rest] = [
      ...wrapper,
      process.execPath,
      '--require',
      join(__dirname, 'typescript-hook.cjs'),
      module,
      ...args,
    ];
    this.#child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#ended = once(this.#child, 'exit');
    if (this.#child.stdout === null) throw new Error('the process has no standard output');
    this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]();
  }

  /** The next line of its standard output. */
  async line(): Promise<string> {
    const { value, done } = await within(this.#lines.next(), 'nothing was written');
    if (done === true) throw new Error('the process ended without another line');
    return value;
  }

  say(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** How it ended by itself: its exit code, or the signal that ended it. */
  async end(): Promise<unknown> {
    const [code, signal] = await within(this.#ended, 'it did not end');
    return code ?? signal;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}

async function within<T>(promise: Promise<T>, otherwise: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(otherwise)), DEADLINE);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

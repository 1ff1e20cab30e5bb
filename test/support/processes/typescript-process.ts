import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { until } from '../waiting/until';

/**
 * A separate process that runs a TypeScript module of the tests, for tests that need to signal or wrap a process. It reports in
 * lines on standard output.
 */
export class TypeScriptProcess {
  readonly #child: ChildProcess;
  readonly #unread: string[] = [];
  #hasEnded = false;

  /** @param wrapper a program and its arguments that starts Node, such as `unshare -Ur` */
  constructor(module: string, args: readonly string[], wrapper: readonly string[] = []) {
    const node = [process.execPath, '--require', join(__dirname, 'typescript-hook.cjs'), module, ...args];
    const [program = '', ...rest] = [...wrapper, ...node];
    const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child.once('close', () => (this.#hasEnded = true));
    createInterface(child.stdout).on('line', (line) => this.#unread.push(line));
  }

  /** The next line of its standard output. */
  line(): Promise<string> {
    return until('the process writes a line', () => {
      if (this.#hasEnded && this.#unread.length === 0) throw new Error('the process ended without another line');
      return this.#unread.shift();
    });
  }

  say(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** How it ended by itself: its exit code, or the signal that ended it. */
  async end(): Promise<unknown> {
    await until('the process ends', () => this.#hasEnded);
    return this.#child.exitCode ?? this.#child.signalCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.end();
  }
}

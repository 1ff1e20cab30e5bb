import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../waiting/until';
import { KeptProcess } from './kept-process';

/** A real program with a folder of its own, in which it runs. It can be killed and started again. */
export abstract class Daemon implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'weir-daemon-'));
  #program: KeptProcess | undefined;

  /** Starts it, also after a crash, and waits until it is ready. */
  abstract run(): Promise<void>;

  /** Starts it for the first time. */
  async started(): Promise<this> {
    try {
      await this.run();
      return this;
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  protected launch(...command: readonly string[]): void {
    this.#program = new KeptProcess(command, this.folder);
  }

  /** What it has written since it was started last. */
  get lines(): readonly string[] {
    return this.#program?.lines ?? [];
  }

  /** 0 while it does not run. */
  get pid(): number {
    return this.#program?.pid ?? 0;
  }

  signal(name: NodeJS.Signals): void {
    // The number 0 would be the process group of the tests.
    if (this.pid === 0) throw new Error(`no program runs that could receive ${name}`);
    process.kill(this.pid, name);
  }

  /** As {@link until}; the error contains the program's last lines. */
  async until<T>(what: string, poll: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
    try {
      return await until(what, poll);
    } catch (error) {
      throw new Error(`${String(error)}; the program wrote:\n${this.lines.slice(-30).join('\n')}`, { cause: error });
    }
  }

  /** Kills it, and waits until it has exited. */
  async crash(): Promise<void> {
    await this.#program?.crash();
    this.#program = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.crash();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Target } from '../load/connection';
import type { Interval } from '../load/interval';
import type { Load } from '../scenarios/loads';

const HOOK = join(__dirname, '../../../test/support/processes/typescript-hook.cjs');

/** As in the service: helper threads of collections would have to wait for busy cores, and the generator for them. */
const ON_ONE_THREAD = '--no-parallel-scavenge';

/** What the generator process receives: what it opens, or a method of the generator to call. */
export type GeneratorRequest =
  | { readonly open: { readonly load: Load; readonly targets: readonly Target[]; readonly connections: number } }
  | { readonly method: GeneratorMethod; readonly args: readonly number[] };
export type GeneratorMethod = 'closed' | 'idle' | 'paced' | 'answers' | 'mark' | 'stop';

export interface LoadOptions {
  readonly load: Load;
  readonly targets: readonly Target[];
  readonly connections: number;
  /** Calls in flight per connection in a closed loop. */
  readonly outstanding: number;
}

/**
 * The load generator in a process of its own, so that it shares neither CPU time nor garbage collection with what
 * measures.
 */
export class LoadGenerator implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #outstanding: number;

  private constructor({ outstanding }: LoadOptions) {
    this.#outstanding = outstanding;
    const execArgv = [ON_ONE_THREAD, '--require', HOOK];
    this.#child = fork(join(__dirname, '../load/generator-process.ts'), { execArgv });
    this.#exited = once(this.#child, 'exit');
  }

  /** Resolves when all connections are open. */
  static async start(options: LoadOptions): Promise<LoadGenerator> {
    const generator = new LoadGenerator(options);
    const { load, targets, connections } = options;
    try {
      await generator.#request({ open: { load, targets, connections } });
      return generator;
    } catch (error) {
      await generator[Symbol.asyncDispose]();
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid!;
  }

  closed(): Promise<unknown> {
    return this.#call('closed', this.#outstanding);
  }

  /** Sends this many calls; resolves when they have ended, or after the timeout in ms. */
  async fill(calls: number, timeout: number): Promise<void> {
    await this.#call('closed', this.#outstanding, calls);
    await this.#call('idle', timeout);
  }

  paced(perSecond: number): Promise<unknown> {
    return this.#call('paced', perSecond);
  }

  /** Calls that were answered since the last mark. */
  async answered(): Promise<number> {
    return (await this.#call('answers')) as number;
  }

  /** What became of the calls since the last mark. */
  async mark(): Promise<Interval> {
    return (await this.#call('mark')) as Interval;
  }

  /** Stops sending; resolves with the number of calls that are still in flight after the timeout in ms. */
  async stop(timeout = 10_000): Promise<number> {
    return (await this.#call('stop', timeout)) as number;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  #call(method: GeneratorMethod, ...args: readonly number[]): Promise<unknown> {
    return this.#request({ method, args });
  }

  async #request(request: GeneratorRequest): Promise<unknown> {
    const answered = once(this.#child, 'message');
    this.#child.send(request);
    const ended = this.#exited.then(() => Promise.reject(new Error('the load generator has ended')));
    const [message] = (await Promise.race([answered, ended])) as [
      { readonly answer?: unknown; readonly error?: string },
    ];
    if (message.error !== undefined) throw new Error(`the load generator: ${message.error}`);
    return message.answer;
  }
}

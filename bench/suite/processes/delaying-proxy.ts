import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const HOOK = join(__dirname, '../../../test/support/processes/typescript-hook.cjs');

export interface DelayingProxyOptions {
  /** The port of the server, on 127.0.0.1. */
  readonly port: number;
  /** By which each reply is delayed. */
  readonly milliseconds: number;
}

/** A proxy in a process of its own that adds to the round-trip time of a server. */
export class DelayingProxy implements AsyncDisposable {
  readonly #child: ChildProcess;

  private constructor(
    child: ChildProcess,
    readonly port: number,
  ) {
    this.#child = child;
  }

  static async start({ port, milliseconds }: DelayingProxyOptions): Promise<DelayingProxy> {
    const child = fork(join(__dirname, 'delaying-proxy-process.ts'), [String(port), String(milliseconds)], {
      execArgv: ['--require', HOOK],
    });
    const [own] = (await once(child, 'message')) as [number];
    return new DelayingProxy(child, own);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}

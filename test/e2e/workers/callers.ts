import type { WeirProcess } from '../../support/processes/weir-process';
import { Load } from '../shop';
import { Clients, OK } from './instance';

/** Callers on several connections that call a descriptor of the domain `shop` without a pause, and are never denied. */
export class Callers implements AsyncDisposable {
  private constructor(
    readonly load: Load,
    readonly clients: Clients,
  ) {}

  static async call(weir: WeirProcess, descriptor: string, connections = 4): Promise<Callers> {
    const clients = await Clients.open(weir, connections);
    let next = 0;
    const load = new Load(async () => {
      const client = clients.all[(next += 1) % clients.all.length]!;
      const { overallCode } = await client.shouldRateLimit('shop', [descriptor]);
      if (overallCode !== OK) throw new Error('a call was denied');
    }, 16);
    return new Callers(load, clients);
  }

  /** Ends the load, and returns how many calls have passed. */
  async end(): Promise<number> {
    await this.load[Symbol.asyncDispose]();
    expect(this.load.failures).toEqual([]);
    return this.load.answered;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.load[Symbol.asyncDispose]();
    this.clients[Symbol.dispose]();
  }
}

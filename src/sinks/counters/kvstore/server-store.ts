import type { Observable } from 'rxjs';
import type { Operation, Result } from '../../../counting/operation';
import type { CounterLane } from '../../../streams/ports/counters';
import { nameOf } from '../server-address';
import { CommandWindows } from './command-windows';
import { type SendCommand, commandsOn, joined } from './commands';
import type { Connection } from './connection';
import { callsOf, count } from './count';
import type { Deadline } from '../../../streams/deadline';
import type { StoreServers } from './deployment';
import type { Instance, Store } from './instance';
import type { Pool } from './pool';
import { Sentinels } from './sentinels';
import { isReply } from './store-error';

/**
 * Counters on one server at a time, which is the only one, or the master that sentinels name: the keys of a window are
 * counted on one connection of a pool.
 */
export class ServerStore implements Store {
  readonly connected$: Observable<boolean>;
  readonly failures$: Observable<Error>;
  readonly connect: () => Observable<Connection>;
  readonly #instance: Instance;
  readonly #sentinels: Sentinels | undefined;
  readonly #pool: Pool;
  readonly #lane: CounterLane;
  readonly #windows: CommandWindows;

  constructor(servers: Exclude<StoreServers, { kind: 'cluster' }>, instance: Instance) {
    this.#instance = instance;
    const name = servers.kind === 'single' ? nameOf(servers.server) : servers.masterName;
    this.#lane = instance.lane(name, {
      apply: (batch) => (deadline) =>
        this.#pool.use(deadline, (connection) => this.#count(batch, connection, deadline)),
      instance: { lanesAtOnce: 1 },
    });
    if (servers.kind === 'single') {
      this.connect = () => instance.connect(servers.server, { counts: false });
      this.#pool = instance.openPool(name, () => instance.connect(servers.server));
    } else {
      const sentinels = (this.#sentinels = new Sentinels(servers, instance));
      this.connect = () => sentinels.connect(() => this.#pool.isConnected);
      this.#pool = instance.openPool(name, this.connect);
    }
    this.#windows = new CommandWindows(this.#pool, this.#lane.pipeline, instance);
    this.connected$ = this.#pool.connected$;
    this.failures$ = this.#pool.failures$;
  }

  laneOf(): CounterLane {
    return this.#lane;
  }

  run<T>(_key: string, commands: (send: SendCommand) => Promise<T>): Promise<T> {
    return this.#windows.run((connection) =>
      commands(commandsOn(connection, false)).catch((error: Error) => {
        throw isReply(error) ? this.#instance.failed(error, connection) : error;
      }),
    );
  }

  close(): void {
    this.#sentinels?.close();
    this.#pool.close();
  }

  /** Rejects when the connection is lost before the first reply. */
  async #count(batch: readonly Operation[], connection: Connection, deadline: Deadline): Promise<readonly Result[]> {
    const instance = this.#instance;
    const groups = callsOf(batch);
    const results = await count(connection, groups, instance.countOptions);
    if (results[0] instanceof Error && !isReply(results[0])) throw results[0];
    const counts = results.map((result, index): readonly Result[] => {
      if (result instanceof Error) {
        const failure = instance.failed(result, connection, deadline);
        return groups[index]!.map(() => failure);
      }
      if (instance.counted(result, connection)) return result;
      return result.map((each) => (each instanceof Error ? instance.failed(each, connection) : each));
    });
    return joined(counts);
  }
}

import type { Observable } from 'rxjs';
import type { Operation, Result } from '../../../counting/operation';
import type { CounterLane } from '../../../streams/ports/counters';
import { nameOf } from '../server-address';
import { CommandWindows } from './command-windows';
import { type GroupResult, type SendCommand, commandsOn, joined } from './commands';
import type { Connection } from './connection';
import { callsOf, countOn } from './count';
import type { Deadline } from '../../../streams/deadline';
import type { ServerState } from '../../../streams/server-state';
import type { StoreServers } from './deployment';
import { type StoreClient, type Store, isAnswering } from './store-client';
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
  readonly #client: StoreClient;
  readonly #sentinels: Sentinels | undefined;
  readonly #state: ServerState;
  readonly #pool: Pool;
  readonly #lane: CounterLane;
  readonly #windows: CommandWindows;

  constructor(servers: Exclude<StoreServers, { kind: 'cluster' }>, client: StoreClient) {
    this.#client = client;
    const name = servers.kind === 'single' ? nameOf(servers.server) : servers.masterName;
    this.#state = client.stateOf(name, () => this.#pool.probe());
    this.#lane = client.lane(this.#state, {
      apply: this.#apply.bind(this),
      instance: { lanesAtOnce: 1 },
    });
    if (servers.kind === 'single') {
      this.connect = () => client.connect(servers.server, { counts: false });
      this.#pool = client.openPool(this.#state, () => client.connect(servers.server));
    } else {
      const sentinels = (this.#sentinels = new Sentinels(servers, client));
      this.connect = () => sentinels.connect(() => this.#pool.isConnected);
      this.#pool = client.openPool(this.#state, this.connect);
    }
    this.#windows = new CommandWindows(this.#pool, this.#lane.pipeline);
    this.connected$ = isAnswering(this.#pool, this.#state);
    this.failures$ = this.#pool.failures$;
  }

  laneOf(): CounterLane {
    return this.#lane;
  }

  run<T>(_key: string, commands: (send: SendCommand) => Promise<T>): Promise<T> {
    return this.#windows.run((connection) =>
      commands(commandsOn(connection, false)).catch((error: Error) => {
        throw isReply(error) ? this.#client.failed(error, connection) : error;
      }),
    );
  }

  async close(): Promise<void> {
    await this.#pool.drain();
    this.#sentinels?.close();
    this.#state.end();
  }

  #apply(batch: readonly Operation[], deadline: Deadline): Promise<readonly Result[]> {
    const groups = callsOf(batch);
    const { countOptions: options } = this.#client;
    return countOn(this.#pool, { groups, options, deadline }, (results, connection) => {
      const [first] = results;
      // The connection was lost before the first reply.
      if (first instanceof Error && !isReply(first)) throw first;
      return joined(results.map((result, index) => this.#resultsOf(result, groups[index]!, { connection, deadline })));
    });
  }

  #resultsOf(
    result: GroupResult,
    group: readonly Operation[],
    { connection, deadline }: { readonly connection: Connection; readonly deadline: Deadline },
  ): readonly Result[] {
    const client = this.#client;
    if (result instanceof Error) {
      const failure = client.failed(result, connection, deadline);
      return group.map(() => failure);
    }
    if (client.counted(result, connection)) return result;
    return result.map((each) => (each instanceof Error ? client.failed(each, connection) : each));
  }
}

import type { Observable } from 'rxjs';
import type { Operation, Result } from '../../../counting/operation';
import type { DecisionError } from '../../../counting/decision-error';
import type { Deadline } from '../../../streams/deadline';
import type { CounterLane } from '../../../streams/ports/counters';
import { nameOf } from '../server-address';
import { CommandWindows } from './command-windows';
import { type GroupResult, type SendCommand, commandsOn } from './commands';
import type { Connection } from './connection';
import { callsOf, count, groupsByScript } from './count';
import type { StoreServers } from './deployment';
import type { Instance, Store } from './instance';
import type { Pool } from './pool';
import { Sentinels } from './sentinels';
import { isReply } from './store-error';

/**
 * Counters on one server at a time, which is the only one, or the master that sentinels name: the keys of a window are counted on one
 * connection of a pool, up to 256 of them at once.
 */
export class ServerStore implements Store {
  readonly connected$: Observable<boolean>;
  readonly failures$: Observable<Error>;
  readonly #instance: Instance;
  readonly #sentinels: Sentinels | undefined;
  readonly #pool: Pool;
  readonly #lane: CounterLane;
  readonly #windows: CommandWindows;

  constructor(servers: Exclude<StoreServers, { kind: 'cluster' }>, instance: Instance) {
    this.#instance = instance;
    const name = servers.kind === 'single' ? nameOf(servers.server) : servers.masterName;
    this.#lane = instance.lane(name, {
      apply: (batch, deadline) => this.#apply(batch, deadline),
      instance: { lanesAtOnce: 1 },
    });
    if (servers.kind === 'single') {
      this.#pool = instance.openPool(name, () => instance.connect(servers.server));
    } else {
      const sentinels = (this.#sentinels = new Sentinels(servers, instance));
      this.#pool = instance.openPool(name, () => sentinels.connect(() => this.#pool.isConnected));
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

  #apply(batch: readonly Operation[], deadline: Deadline): Promise<readonly Result[]> {
    const calls = callsOf(batch);
    return calls.length === 1 ? this.#call(batch, deadline) : this.#callInTurn(calls, deadline);
  }

  /** One call after the other, so that operations on the same key keep their order even when a call fails. */
  async #callInTurn(calls: readonly (readonly Operation[])[], deadline: Deadline): Promise<readonly Result[]> {
    const counts: Result[] = [];
    for (const [index, call] of calls.entries()) {
      try {
        for (const each of await this.#call(call, deadline)) counts.push(each);
      } catch (error) {
        // No operation has a count, so the window fails as a whole.
        if (index === 0) throw error;
        // The calls after this one are not sent.
        return [...counts, ...calls.slice(index).flatMap((unsent) => unsent.map(() => error as DecisionError))];
      }
    }
    return counts;
  }

  /** Rejects when the connection is lost; an error reply to a script call is the error of each of its operations. */
  #call(operations: readonly Operation[], deadline: Deadline): Promise<readonly Result[]> {
    return this.#pool.use(deadline, async (connection) => {
      const groups = groupsByScript(operations);
      const results = await count(connection, groups, this.#instance.countOptions);
      const counts = groups.map((group, index) => this.#counts(group, results[index] as GroupResult, connection));
      if (counts.length === 1) return counts[0] as readonly Result[];
      const [plain, decided] = counts.map((group) => group.values());
      return operations.map(({ limit }) => (limit.algorithm === undefined ? plain : decided)?.next().value as Result);
    });
  }

  #counts(group: readonly Operation[], result: GroupResult, connection: Connection): readonly Result[] {
    const instance = this.#instance;
    if (result instanceof Error) {
      if (!isReply(result)) throw result;
      const failure = instance.failed(result, connection);
      return group.map(() => failure);
    }
    if (instance.counted(result, connection)) return result;
    return result.map((each) => (each instanceof Error ? instance.failed(each, connection) : each));
  }
}

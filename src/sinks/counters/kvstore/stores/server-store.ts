import type { Observable } from 'rxjs';
import type { Count, CounterOperation } from '../../../../limiter/counter-operation';
import type { DecisionError } from '../../../../limiter/decision-error';
import type { CounterLane } from '../../../../streams/ports/counters';
import type { Connection } from '../connections/connection';
import { Deadline } from '../connections/deadline';
import type { Pool } from '../connections/pool';
import { isReply } from '../connections/store-error';
import { type CountOptions, callsOf, count } from '../counting/count';
import { type GroupResult, type SendCommand, commandsOn } from '../counting/plain-commands';
import type { Instance, Store } from './instance';
import { type OnReadonly, ReplyHandler } from './reply-handler';

export interface ServerStoreOptions {
  /** The server, or the name of the master, for the log. */
  readonly name: string;
  /** Opens a connection to the current server; fails when it is lost, or when another server has become the current one. */
  readonly connect: () => Observable<Connection>;
  readonly onReadonly: OnReadonly;
}

/** Counters on one server at a time: a window is one atomic script call on one connection of a pool. */
export class ServerStore implements Store {
  readonly connected$: Observable<boolean>;
  readonly failures$: Observable<Error>;
  readonly #instance: Instance;
  readonly #pool: Pool;
  readonly #replies: ReplyHandler;
  readonly #lane: CounterLane;
  readonly #counting: CountOptions;

  constructor(instance: Instance, { name, connect, onReadonly }: ServerStoreOptions) {
    this.#instance = instance;
    this.#replies = new ReplyHandler(instance, onReadonly);
    this.#counting = {
      ...{ expiry: instance.expiry, knownExpiries: instance.knownExpiries, isAsking: false },
      onScriptsRejected: (error) => this.#replies.scriptsRejected(error),
    };
    this.#lane = instance.lane((batch, deadline) => this.#apply(batch, deadline), { lanesAtOnce: 1 });
    this.#pool = instance.openPool(name, connect);
    this.connected$ = this.#pool.connected$;
    this.failures$ = this.#pool.failures$;
  }

  get isConnected(): boolean {
    return this.#pool.isConnected;
  }

  laneOf(): CounterLane {
    return this.#lane;
  }

  run<T>(_key: string, commands: (send: SendCommand) => Promise<T>): Promise<T> {
    return Deadline.within(this.#instance.options.timeout, (deadline) =>
      this.#pool.use(deadline, (connection) =>
        commands(commandsOn(connection, false)).catch((error: Error) => {
          throw isReply(error) ? this.#replies.failed(error, connection) : error;
        }),
      ),
    );
  }

  close(): void {
    this.#pool.close();
  }

  /** One call after the other, so that operations on the same key keep their order even when a call fails. */
  async #apply(batch: readonly CounterOperation[], deadline: Deadline): Promise<readonly Count[]> {
    const calls = callsOf(batch);
    const counts: (readonly Count[])[] = [];
    for (const [index, call] of calls.entries()) {
      try {
        counts.push(await this.#call(call, deadline));
      } catch (error) {
        // No operation has a count, so the window fails as a whole.
        if (index === 0) throw error;
        // The calls after this one are not sent.
        const unsent = calls.slice(index).flat();
        return [...counts.flat(), ...unsent.map(() => error as DecisionError)];
      }
    }
    return counts.length === 1 ? (counts[0] as readonly Count[]) : counts.flat();
  }

  /** Rejects when the connection is lost; an error reply to the call is the error of each operation. */
  #call(operations: readonly CounterOperation[], deadline: Deadline): Promise<readonly Count[]> {
    return this.#pool.use(deadline, async (connection) => {
      const [result] = (await count(connection, [operations], this.#counting)) as [GroupResult];
      if (!(result instanceof Error)) return this.#replies.counts(result, connection);
      if (!isReply(result)) throw result;
      const failure = this.#replies.failed(result, connection);
      return operations.map(() => failure);
    });
  }
}

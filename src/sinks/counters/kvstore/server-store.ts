import type { Observable } from 'rxjs';
import type { Count, CounterOperation } from '../../../limiter/counter-operation';
import type { DecisionError } from '../../../limiter/decision-error';
import type { CounterLane } from '../../../streams/ports/counters';
import type { Connection } from './connection';
import { Deadline } from './deadline';
import type { Pool } from './pool';
import { isReply } from './store-error';
import { callsOf, count } from './count';
import { type GroupResult, type SendCommand, commandsOn } from './commands';
import type { Instance, Store } from './instance';
import { ReplyHandler } from './reply-handler';

/** The server that counts at present. */
export interface CurrentServer {
  /** The server, or the name of the master, for the log. */
  readonly name: string;
  /** Opens a connection to it; fails when it is lost, or when another server has become the current one. */
  connect(): Observable<Connection>;
  /** A server, by its name, has replied that it is a read-only replica. */
  isReadonly(server: string): void;
  close(): void;
}

/** Counters on one server at a time: a window is one atomic script call on one connection of a pool. */
export class ServerStore implements Store {
  readonly connected$: Observable<boolean>;
  readonly failures$: Observable<Error>;
  readonly #instance: Instance;
  readonly #server: CurrentServer;
  readonly #pool: Pool;
  readonly #replies: ReplyHandler;
  readonly #lane: CounterLane;

  constructor(instance: Instance, server: CurrentServer) {
    this.#instance = instance;
    this.#server = server;
    this.#replies = new ReplyHandler(instance, (name) => server.isReadonly(name));
    this.#lane = instance.lane((batch, deadline) => this.#apply(batch, deadline), { lanesAtOnce: 1 });
    this.#pool = instance.openPool(server.name, () => server.connect());
    this.connected$ = this.#pool.connected$;
    this.failures$ = this.#pool.failures$;
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
    this.#server.close();
    this.#pool.close();
  }

  #apply(batch: readonly CounterOperation[], deadline: Deadline): Promise<readonly Count[]> {
    const calls = callsOf(batch);
    return calls.length === 1 ? this.#call(batch, deadline) : this.#callInTurn(calls, deadline);
  }

  /** One call after the other, so that operations on the same key keep their order even when a call fails. */
  async #callInTurn(calls: readonly (readonly CounterOperation[])[], deadline: Deadline): Promise<readonly Count[]> {
    const counts: Count[] = [];
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

  /** Rejects when the connection is lost; an error reply to the call is the error of each operation. */
  #call(operations: readonly CounterOperation[], deadline: Deadline): Promise<readonly Count[]> {
    const { expiries } = this.#instance;
    return this.#pool.use(deadline, async (connection) => {
      const [result] = (await count(connection, [operations], { expiries, isAsking: false })) as [GroupResult];
      if (!(result instanceof Error)) return this.#replies.counts(result, connection);
      if (!isReply(result)) throw result;
      const failure = this.#replies.failed(result, connection);
      return operations.map(() => failure);
    });
  }
}

import { type Observable, type Subscription, merge } from 'rxjs';
import type { Count, CounterOperation } from '../../../../limiter/counter-operation';
import type { CounterLane } from '../../../../streams/ports/counters';
import type { Connection } from '../connections/connection';
import { Deadline } from '../connections/deadline';
import type { Pool } from '../connections/pool';
import { isReply, storeError, timedOut } from '../connections/store-error';
import { countByCommands } from '../counting/count-by-commands';
import { countByScript, partsOf } from '../counting/count-by-script';
import { decideGuards, readsOf } from '../../guarded-batch';
import { isScriptRejection } from '../counting/run-script';
import type { StepResult } from '../counting/step-result';
import { type OnReadonly, ReplyHandler } from './reply-handler';
import { runCommands } from './run-commands';
import type { SendCommand, Store } from './store';
import { StoreLane, pipelineOf } from './store-lane';
import { type StoreContext, endStartup, logConnections, openPool } from './store-context';

export interface PooledStoreOptions {
  /** The server, or the name of the master, for the log. */
  readonly name: string;
  /** Opens a connection to the current server; fails when it is lost, or when another server has become the current one. */
  readonly connect: () => Observable<Connection>;
  readonly onReadonly: OnReadonly;
}

/** Counters on one server at a time: a window is one atomic script call on one connection of a pool. */
export class PooledStore implements Store {
  readonly #context: StoreContext;
  readonly #pool: Pool;
  readonly #replies: ReplyHandler;
  readonly #lane: CounterLane;
  readonly #subscription: Subscription;

  constructor(context: StoreContext, { name, connect, onReadonly }: PooledStoreOptions) {
    this.#context = context;
    this.#replies = new ReplyHandler(context, onReadonly);
    const { instance, inFlight } = context;
    this.#lane = new StoreLane((batch) => this.#apply(batch), {
      pipeline: pipelineOf(instance),
      instance: { lanesAtOnce: 1 },
      inFlight,
    });
    this.#pool = openPool(context, { connect, retryDelay: context.startupDelay.next });
    this.#subscription = merge(
      logConnections(this.#pool, context, name),
      endStartup(this.#pool.connected$, context),
    ).subscribe();
  }

  get isConnected(): boolean {
    return this.#pool.isConnected;
  }

  get connected$(): Observable<boolean> {
    return this.#pool.connected$;
  }

  get failures$(): Observable<Error> {
    return this.#pool.failures$;
  }

  laneOf(): CounterLane {
    return this.#lane;
  }

  async #apply(batch: readonly CounterOperation[]): Promise<readonly Count[]> {
    const deadline = new Deadline(this.#context.instance.timeout);
    const parts = partsOf(batch);
    try {
      return await this.#pool.use(deadline, (connection) =>
        parts.length === 1 ? this.#applyPart(connection, batch) : this.#applyParts(connection, parts, deadline),
      );
    } catch (error) {
      throw deadline.hasPassed ? timedOut() : storeError(error);
    } finally {
      deadline.end();
    }
  }

  async run<T>(_key: string, commands: (send: SendCommand) => Promise<T>): Promise<T> {
    const deadline = new Deadline(this.#context.instance.timeout);
    try {
      const outcome = await this.#pool.use(deadline, async (connection) => {
        const result = await runCommands(connection, commands);
        return 'error' in result ? { error: this.#replies.failed(result.error, connection) } : result;
      });
      if ('error' in outcome) throw outcome.error;
      return outcome.value;
    } catch (error) {
      throw deadline.hasPassed ? timedOut() : storeError(error);
    } finally {
      deadline.end();
    }
  }

  close(): void {
    this.#pool.close();
    this.#subscription.unsubscribe();
  }

  /** One part after the other, so that operations on the same key keep their order even when a part fails. */
  async #applyParts(
    connection: Connection,
    parts: readonly (readonly CounterOperation[])[],
    deadline: Deadline,
  ): Promise<readonly Count[]> {
    const counts: Count[] = [];
    for (const [index, part] of parts.entries()) {
      try {
        if (deadline.hasPassed) throw timedOut();
        for (const count of await this.#applyPart(connection, part)) counts.push(count);
      } catch (error) {
        // No operation has a count, so the window fails as a whole.
        if (counts.length === 0) throw error;
        const failure = deadline.hasPassed ? timedOut() : storeError(error);
        // The parts after this one were not sent.
        return [...counts, ...parts.slice(index).flatMap((unapplied) => unapplied.map(() => failure))];
      }
    }
    return counts;
  }

  /** Rejects when the connection is lost; an error reply to the call is the error of each operation. */
  async #applyPart(connection: Connection, part: readonly CounterOperation[]): Promise<readonly Count[]> {
    try {
      const results = connection.rejectsScripts
        ? await this.#countByCommands(connection, part)
        : await countByScript(connection, part, this.#context);
      return this.#replies.counts(results, connection);
    } catch (error) {
      if (isScriptRejection(error) && !connection.rejectsScripts) {
        this.#replies.scriptsRejected(connection, error as Error);
        return this.#applyPart(connection, part);
      }
      if (!isReply(error)) {
        // The connection is lost already, or its replies no longer match the commands.
        connection.destroy();
        throw error;
      }
      const failure = this.#replies.failed(error, connection);
      return part.map(() => failure);
    }
  }

  async #countByCommands(connection: Connection, part: readonly CounterOperation[]): Promise<readonly StepResult[]> {
    const { expiry } = this.#context;
    if (!part.some(({ guard }) => guard !== undefined)) return countByCommands(connection, part, { expiry });
    const stored = await countByCommands(connection, readsOf(part), { expiry });
    return countByCommands(connection, decideGuards(part, stored), { expiry });
  }
}

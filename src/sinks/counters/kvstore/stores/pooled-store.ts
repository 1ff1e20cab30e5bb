import type { Observable } from 'rxjs';
import type { Count, CounterOperation } from '../../../../limiter/counter-operation';
import { Answers } from './answers';
import { Connection } from '../connections/connection';
import { countByCommands } from '../counting/count-by-commands';
import { countByScript, partsOf } from '../counting/count-by-script';
import { Deadline } from '../connections/deadline';
import { decideGuards, readsOf } from '../counting/guards';
import { logConnections } from '../connections/state-log';
import type { Outcome } from '../counting/outcome';
import { Pool } from '../connections/pool';
import { isScriptRefusal } from '../counting/run-script';
import type { Store } from './store';
import type { StoreContext } from './store-context';
import { isReply, storeError, timedOut } from '../connections/store-error';

export interface PooledStoreOptions {
  /** The server, or the name of the master, for the log. */
  readonly name: string;
  /** A new connection to the server of the moment. */
  readonly connect: () => Observable<Connection>;
  /** Told when the server has said that it is a read-only replica. */
  readonly onReadonly: () => void;
}

/** Counters on one server at a time: a window is one atomic script call over one connection of a pool. */
export class PooledStore implements Store {
  readonly #context: StoreContext;
  readonly #pool: Pool;
  readonly #answers: Answers;

  constructor(context: StoreContext, { name, connect, onReadonly }: PooledStoreOptions) {
    this.#context = context;
    const { instance, windowsInFlight, statistics, backoff } = context;
    this.#answers = new Answers(context, onReadonly);
    this.#pool = new Pool({
      connect,
      size: instance.poolSize,
      onEmpty: instance.poolOnEmptyBehavior,
      onEmptyAfter: instance.poolOnEmptyWaitDuration,
      windowsInFlight,
      timeout: instance.timeout,
      backoff,
      statistics,
    });
    logConnections(this.#pool, context.log, { store: context.name, server: name });
  }

  get connected$(): Observable<boolean> {
    return this.#pool.connected$;
  }

  get failures$(): Observable<Error> {
    return this.#pool.failures$;
  }

  /** Cuts the connections that do not lead to this server. */
  keepOnly(server: string): void {
    this.#pool.keepOnly(server);
  }

  async run(batch: readonly CounterOperation[]): Promise<readonly Count[]> {
    const deadline = new Deadline(this.#context.instance.timeout);
    try {
      const lease = this.#pool.lease(deadline);
      const connection = lease instanceof Connection ? lease : await lease;
      function cut(): void {
        connection.destroy();
      }
      deadline.watch(cut);
      try {
        return await this.#window(connection, batch, deadline);
      } finally {
        this.#pool.release(connection);
      }
    } catch (error) {
      throw deadline.hasPassed ? timedOut() : storeError(error);
    } finally {
      deadline.end();
    }
  }

  close(): void {
    this.#pool.close();
  }

  async #window(
    connection: Connection,
    batch: readonly CounterOperation[],
    deadline: Deadline,
  ): Promise<readonly Count[]> {
    const parts = partsOf(batch);
    if (parts.length === 1) return this.#part(connection, batch);
    const counts: Count[] = [];
    // One after another, so that operations of one key keep their order whatever becomes of a part.
    for (const part of parts) {
      try {
        for (const count of await this.#part(connection, part)) counts.push(count);
      } catch (error) {
        // Nothing of what comes later was sent.
        if (counts.length === 0) throw error;
        const failure = deadline.hasPassed ? timedOut() : storeError(error);
        while (counts.length < batch.length) counts.push(failure);
        break;
      }
    }
    return counts;
  }

  /** Rejects when the connection is lost; an error reply to the whole is the error of each operation. */
  async #part(connection: Connection, part: readonly CounterOperation[]): Promise<readonly Count[]> {
    try {
      const { expiry } = this.#context;
      const outcomes = connection.refusesScripts
        ? await this.#plainly(connection, part)
        : await countByScript(connection, part, expiry);
      return this.#answers.counts(outcomes, connection);
    } catch (error) {
      if (isScriptRefusal(error) && !connection.refusesScripts) {
        this.#answers.scriptsRefused(connection, error as Error);
        return this.#part(connection, part);
      }
      if (!isReply(error)) {
        // Lost already, or not to be trusted any more: its next reply may belong to this question.
        connection.destroy();
        throw error;
      }
      const failure = this.#answers.error(error, connection);
      return part.map(() => failure);
    }
  }

  async #plainly(connection: Connection, part: readonly CounterOperation[]): Promise<readonly Outcome[]> {
    const { expiry } = this.#context;
    if (!part.some(({ guard }) => guard !== undefined)) return countByCommands(connection, part, expiry);
    const stored = await countByCommands(connection, readsOf(part), expiry);
    return countByCommands(connection, decideGuards(part, stored), expiry);
  }
}

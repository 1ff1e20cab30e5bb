import { type Observable, Subject } from 'rxjs';
import type { CounterLane } from '../../../../../streams/ports/counters';
import { type Server, nameOf } from '../../../server-address';
import type { Connection } from '../../connections/connection';
import type { Deadline } from '../../connections/deadline';
import type { Pool } from '../../connections/pool';
import { RECONNECT } from '../../connections/retry-delay';
import { countByCommands } from '../../counting/count-by-commands';
import { type CountCall, type Expiries, countCall, countResults } from '../../counting/count-by-script';
import type { Step } from '../../../guarded-batch';
import { isScriptRejection, isUnknownScript, runByHash, runByText } from '../../counting/run-script';
import { COUNT } from '../../counting/scripts';
import type { StepResult } from '../../counting/step-result';
import { type CommandsOutcome, runCommands } from '../run-commands';
import type { SendCommand } from '../store';
import { type StoreContext, openConnection, openPool } from '../store-context';

/** Steps that go to one node in one write, each in a script call of its own because their keys are in different slots. */
export interface NodeBatch {
  readonly steps: readonly Step[];
  /** The slots of the keys are being imported by this node (ASK redirect). */
  readonly isAsking: boolean;
}

export interface NodeReply {
  readonly connection: Connection;
  readonly results: readonly StepResult[];
}

/** Called when the node has rejected scripts on a connection. */
export type OnScriptsRejected = (connection: Connection, error: Error) => void;

export interface ClusterNodeOptions {
  /** Makes the lane of the node. */
  readonly lane: (retired$: Observable<unknown>) => CounterLane;
  readonly onScriptsRejected: OnScriptsRejected;
}

/**
 * How many script calls of each repetition are made by text, after EVALSHA was answered with NOSCRIPT. The first one loads the script
 * for the others, unless it is redirected, and so not run: then all of them. The last repetition is for steps that were
 * rejected as scripts in the one before, which go as plain commands.
 */
const TEXTS_OF_REPETITIONS = [1, Infinity, Infinity];

/** A master of a cluster, its lane, and the connections to it. */
export class ClusterNode {
  readonly name: string;
  readonly pool: Pool;
  readonly lane: CounterLane;
  readonly #server: Server;
  readonly #expiries: Expiries;
  readonly #onScriptsRejected: OnScriptsRejected;
  readonly #retired$ = new Subject<void>();

  constructor(server: Server, context: StoreContext, { lane, onScriptsRejected }: ClusterNodeOptions) {
    this.name = nameOf(server);
    this.pool = openPool(context, { connect: () => openConnection(server, context), retryDelay: RECONNECT });
    this.#server = server;
    this.#expiries = context;
    this.#onScriptsRejected = onScriptsRejected;
    this.lane = lane(this.#retired$.asObservable());
  }

  /** The host that the node means when it omits one in a reply. */
  get host(): string {
    return this.#server.kind === 'tcp' ? this.#server.host : 'localhost';
  }

  /**
   * Applies the steps. Resolves with the result of each, which for steps without a reply is the loss of the connection;
   * rejects when no connection could be had.
   */
  apply(batch: NodeBatch, deadline: Deadline): Promise<NodeReply> {
    return this.pool.use(deadline, async (connection) => ({
      connection,
      results: await this.#count(connection, batch),
    }));
  }

  /** Runs commands on a key that the node holds, or imports. Rejects when no connection could be had, or it was lost. */
  run<T>(
    commands: (send: SendCommand) => Promise<T>,
    isAsking: boolean,
    deadline: Deadline,
  ): Promise<CommandsOutcome<T> & { readonly connection: Connection }> {
    return this.pool.use(deadline, async (connection) => ({
      ...(await runCommands(connection, commands, isAsking)),
      connection,
    }));
  }

  /** The node holds no slots any more: closes its pool once its batches in flight have ended. */
  retire(): void {
    this.#retired$.next();
    this.pool.drain();
  }

  async #count(connection: Connection, batch: NodeBatch): Promise<readonly StepResult[]> {
    if (connection.rejectsScripts) return this.#countByCommands(connection, batch);
    let results = await this.#runScripts(connection, batch, 0);
    for (const texts of TEXTS_OF_REPETITIONS) {
      // Neither NOSCRIPT nor a rejection has counted anything, so these steps, and no others, are sent again.
      const steps = batch.steps.filter((_, index) => isUncounted(results[index]));
      if (steps.length === 0) break;
      const uncounted = { steps, isAsking: batch.isAsking };
      const rejection = results.find(isScriptRejection) as Error | undefined;
      if (rejection !== undefined) this.#onScriptsRejected(connection, rejection);
      const repeated =
        rejection === undefined
          ? await this.#runScripts(connection, uncounted, texts)
          : await this.#countByCommands(connection, uncounted);
      const next = repeated.values();
      results = results.map((result) => (isUncounted(result) ? (next.next().value as StepResult) : result));
    }
    return results;
  }

  /** @param texts how many script calls, from the first one on, are made by text, which also loads the script into the node */
  async #runScripts(
    connection: Connection,
    { steps, isAsking }: NodeBatch,
    texts: number,
  ): Promise<readonly StepResult[]> {
    const calls = steps.map((step) => countCall([step], this.#expiries));
    const replies = connection.inOneWrite(() =>
      calls.map((call, index) => {
        // An error of ASKING shows in the reply to the command that follows.
        if (isAsking) connection.send('ASKING').catch(() => undefined);
        const run = index < texts ? runByText : runByHash;
        return run(connection, COUNT, call).catch((error: Error) => error);
      }),
    );
    const results: StepResult[] = [];
    for (const [index, reply] of (await Promise.all(replies)).entries()) {
      results.push(
        reply instanceof Error
          ? reply
          : (countResults(reply, calls[index] as CountCall, this.#expiries)[0] as StepResult),
      );
    }
    return results;
  }

  async #countByCommands(connection: Connection, { steps, isAsking }: NodeBatch): Promise<readonly StepResult[]> {
    try {
      return await countByCommands(connection, steps, { expiry: this.#expiries.expiry, isAsking });
    } catch (error) {
      return steps.map(() => error as Error);
    }
  }
}

function isUncounted(result: StepResult | undefined): boolean {
  return isUnknownScript(result) || isScriptRejection(result);
}

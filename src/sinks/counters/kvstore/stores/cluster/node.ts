import { type Server, nameOf } from '../../connections/address';
import { RECONNECT } from '../../connections/backoff';
import { Connection } from '../../connections/connection';
import { countByCommands } from '../../counting/count-by-commands';
import { steps as stepsText } from '../../counting/count-by-script';
import type { Deadline } from '../../connections/deadline';
import type { Step } from '../../counting/guards';
import { logConnections } from '../../connections/state-log';
import { type StoreContext, openConnection } from '../store-context';
import { type Outcome, outcomesOf } from '../../counting/outcome';
import { Pool } from '../../connections/pool';
import { COUNT } from '../../counting/scripts';
import { isScriptRefusal, isUnknownScript, runByName, runByText } from '../../counting/run-script';

/** Steps that go to one node in one write, each a script call of its own: their keys lie in different slots. */
export interface Group {
  readonly steps: readonly Step[];
  /** Their slots are moving to this node (ASK). */
  readonly isAsking: boolean;
}

/** A master of a cluster, and the connections to it. */
export class Node {
  readonly #context: StoreContext;
  readonly name: string;
  readonly pool: Pool;

  constructor(
    readonly server: Server,
    context: StoreContext,
  ) {
    this.#context = context;
    const { instance, windowsInFlight, statistics, log } = context;
    this.name = nameOf(server);
    this.pool = new Pool({
      connect: () => openConnection(server, context),
      size: instance.poolSize,
      onEmpty: instance.poolOnEmptyBehavior,
      onEmptyAfter: instance.poolOnEmptyWaitDuration,
      windowsInFlight,
      timeout: instance.timeout,
      backoff: RECONNECT,
      statistics,
    });
    logConnections(this.pool, log, { store: context.name, server: this.name });
  }

  /** The host that the node means where it leaves out a name. */
  get host(): string {
    return this.server.kind === 'tcp' ? this.server.host : 'localhost';
  }

  /**
   * Takes the steps of a group; what became of each, where a lost connection is the error of those it had not answered.
   * Rejects when no connection was to be had.
   *
   */
  async take(
    group: Group,
    deadline: Deadline,
    onRefusal: (connection: Connection, error: Error) => void,
  ): Promise<Answer> {
    const lease = this.pool.lease(deadline);
    const connection = lease instanceof Connection ? lease : await lease;
    function cut(): void {
      connection.destroy();
    }
    deadline.watch(cut);
    try {
      return { connection, outcomes: await this.#count(connection, group, onRefusal) };
    } catch (error) {
      // Not to be trusted any more: its next reply may belong to this question.
      connection.destroy();
      throw error;
    } finally {
      deadline.forget(cut);
      this.pool.release(connection);
    }
  }

  async #count(
    connection: Connection,
    { steps, isAsking }: Group,
    onRefusal: (connection: Connection, error: Error) => void,
  ): Promise<readonly Outcome[]> {
    const { expiry } = this.#context;
    if (connection.refusesScripts) return countByCommands(connection, steps, expiry, isAsking).catch(failAll(steps));
    const outcomes = await this.#runScripts(connection, steps, isAsking, false);
    const refusal = outcomes.find(isScriptRefusal) as Error | undefined;
    if (refusal !== undefined) onRefusal(connection, refusal);
    const again = steps.filter((_, index) => isUnknownScript(outcomes[index]) || isScriptRefusal(outcomes[index]));
    if (again.length === 0) return outcomes;
    // Neither was applied: the server looked at the command's name, or for the script, and did nothing.
    const seconds =
      refusal === undefined
        ? await this.#runScripts(connection, again, isAsking, true)
        : await countByCommands(connection, again, expiry, isAsking).catch(failAll(again));
    let next = 0;
    return outcomes.map((outcome) =>
      isUnknownScript(outcome) || isScriptRefusal(outcome) ? (seconds[next++] as Outcome) : outcome,
    );
  }

  /** @param isFirstByText the script is not known to the server: the first call brings it along */
  async #runScripts(
    connection: Connection,
    steps: readonly Step[],
    isAsking: boolean,
    isFirstByText: boolean,
  ): Promise<readonly Outcome[]> {
    const { expiry } = this.#context;
    const replies = connection.together(() =>
      steps.map((step, index) => {
        // What is wrong with it, the command behind it says.
        if (isAsking) connection.send('ASKING').catch(() => undefined);
        const run = isFirstByText && index === 0 ? runByText : runByName;
        return run(connection, COUNT, [step.key], stepsText([step], expiry)).catch((error: Error) => error);
      }),
    );
    const outcomes: Outcome[] = [];
    for (const reply of await Promise.all(replies)) {
      outcomes.push(reply instanceof Error ? reply : (outcomesOf(reply, 1)[0] as Outcome));
    }
    return outcomes;
  }
}

export interface Answer {
  readonly connection: Connection;
  readonly outcomes: readonly Outcome[];
}

function failAll(steps: readonly Step[]): (error: Error) => readonly Outcome[] {
  return (error) => steps.map(() => error);
}

import { Observable, type Subscriber } from 'rxjs';
import type { Count, CounterOperation } from '../../../limiter/counter-operation';
import { DecisionError } from '../../../limiter/decision-error';
import type { CounterInstance, CounterLane, LanePipeline } from '../../../streams/ports/counters';
import type { Expiry } from '../expiry';
import { decideGuards } from '../guarded-batch';
import { planBatch } from './counting/plan-batch';
import { writeBatch } from './counting/write-batch';
import type { NodeConnections } from './nodes/node-connections';
import type { NodeState } from './nodes/node-state';
import type { PlaincacheStatistics } from './counting/plaincache-statistics';
import { type WireKey, wireKey } from './protocol/legal-key';
import { type StoredValue, ValuesReader, getCommands } from './protocol/read-values';

export interface NodeLaneOptions {
  readonly connections: NodeConnections;
  readonly state: NodeState;
  readonly pipeline: LanePipeline;
  readonly instance: CounterInstance;
  readonly retired$: Observable<unknown>;
  readonly expiry: Expiry;
  readonly statistics: PlaincacheStatistics;
  /** Receives the errors of commands that the server rejected, and values that are not numbers. */
  readonly onRejected: (error: Error) => void;
}

/**
 * The counters of one memcached server. A batch is read, decided and answered; then its hits are written. The next batch is read when
 * they have been, so that hits of this process are never missed; those that other processes write in between are.
 */
export class NodeLane implements CounterLane {
  readonly pipeline: LanePipeline;
  readonly instance: CounterInstance;
  readonly retired$: Observable<unknown>;
  readonly #options: NodeLaneOptions;
  /** Settles when the last batch has been written. */
  #idle: Promise<void> = Promise.resolve();

  constructor(options: NodeLaneOptions) {
    this.#options = options;
    this.pipeline = options.pipeline;
    this.instance = options.instance;
    this.retired$ = options.retired$;
  }

  /** Resolves when every batch has been written. */
  get idle(): Promise<void> {
    return this.#idle;
  }

  /**
   * As {@link CounterLane.apply}, but completes only when the hits have been written: until then the batch is in flight. The counts that a
   * node does not send are 0, so that their limits do not apply; the batch does not fail.
   */
  apply(batch: readonly CounterOperation[]): Observable<readonly Count[]> {
    return new Observable((subscriber) => {
      this.#idle = this.#idle
        .then(() => this.#apply(batch, subscriber))
        .catch((error: unknown) => subscriber.error(error));
    });
  }

  /**
   * Runs other commands between two batches. Rejects with a DecisionError: a server that does not answer cannot be administered.
   */
  administer<T>(run: (connections: NodeConnections) => Promise<T>): Promise<T> {
    const { state, connections } = this.#options;
    const done = this.#idle.then(async () => {
      if (!state.isUp) throw doesNotAnswer();
      try {
        return await run(connections);
      } catch (error) {
        if (error instanceof DecisionError) throw error;
        state.failed(error);
        throw doesNotAnswer(error);
      }
    });
    this.#idle = done.then(
      () => undefined,
      () => undefined,
    );
    return done;
  }

  async #apply(batch: readonly CounterOperation[], subscriber: Subscriber<readonly Count[]>): Promise<void> {
    const wires = batch.map(({ key }) => wireKey(key));
    const stored = await this.#read(new Set(wires));
    const decided = batch.some(({ guard }) => guard !== undefined)
      ? decideGuards(
          batch,
          wires.map((wire) => stored.get(wire) ?? 0),
        )
      : batch;
    const { counts, commands } = planBatch(decided, { wires, stored }, this.#options.expiry);
    subscriber.next(counts);

    const { state, connections, statistics, onRejected } = this.#options;
    if (!state.isUp) {
      for (const command of commands) statistics.dropped(command);
    } else if (commands.length > 0) {
      await writeBatch(connections, commands, { statistics, onRejected }).catch((error: unknown) =>
        state.failed(error),
      );
    }
    subscriber.complete();
  }

  /**
   * The values of the keys that exist. When the node stops answering, those that have arrived: they are right, so their limits apply,
   * although the hits of the whole batch are dropped.
   */
  async #read(keys: ReadonlySet<WireKey>): Promise<ReadonlyMap<WireKey, StoredValue>> {
    const { state, connections, statistics, onRejected } = this.#options;
    if (keys.size === 0) return NO_VALUES;
    if (!state.isUp) {
      statistics.read('error', { requested: keys.size, found: 0 });
      return NO_VALUES;
    }
    const values = new Map<WireKey, StoredValue>();
    let code: 'success' | 'error' = 'success';
    try {
      // A read is repeated only if nothing has arrived, so the values are those of one reply.
      await connections.read(getCommands(keys), () => new ValuesReader(keys, values));
    } catch (error) {
      code = 'error';
      state.failed(error);
    }
    statistics.read(code, { requested: keys.size, found: values.size });
    for (const value of values.values()) {
      if (value === undefined) onRejected(new Error('a counter holds a value that is not a number'));
    }
    return values;
  }
}

function doesNotAnswer(cause?: unknown): DecisionError {
  return new DecisionError('store_failed', 'the memcached server of the counter does not answer', { cause });
}

const NO_VALUES: ReadonlyMap<WireKey, StoredValue> = new Map();

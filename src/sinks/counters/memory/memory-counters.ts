import { type Observable, of } from 'rxjs';
import type { Count, CounterOperation } from '../../../limiter/counter-operation';
import { DecisionError } from '../../../limiter/decision-error';
import type { Counters } from '../../../streams/ports/counters';
import { ExpiringCounts } from './expiring-counts';

export interface MemoryCountersOptions {
  /** How many keys are kept at the most: MEMORY_MAX_KEYS. */
  readonly maxKeys: number;
  /** Unix time in milliseconds. */
  readonly now: () => number;
}

/** How often keys are looked through that no operation comes by, in milliseconds. */
const SWEEP_INTERVAL = 1000;
/** Keys that leave at one look, so that a burst of expiries does not hold up decisions. */
const SWEEP_KEYS = 20_000;

/**
 * Counts in this process: nothing is shared with other processes, nothing survives a restart. Bounded: a key leaves when its
 * window has passed; beyond `maxKeys` the keys that would expire soonest make room, and their counts begin anew.
 */
export class MemoryCounters implements Counters {
  readonly connected$: Observable<boolean> = of(true);
  readonly #counts: ExpiringCounts;
  readonly #now: () => number;
  readonly #sweeper: NodeJS.Timeout;

  constructor({ maxKeys, now }: MemoryCountersOptions) {
    this.#counts = new ExpiringCounts(maxKeys);
    this.#now = now;
    this.#sweeper = setInterval(() => this.#counts.expire(this.#now(), SWEEP_KEYS), SWEEP_INTERVAL);
    this.#sweeper.unref();
  }

  /** Keys that are held now. */
  get size(): number {
    return this.#counts.size;
  }

  /** Keys that made room for others before their time. */
  get evictions(): number {
    return this.#counts.evictions;
  }

  apply(batch: readonly CounterOperation[]): Observable<readonly Count[]> {
    const now = this.#now();
    const counts: Count[] = [];
    for (let index = 0; index < batch.length; index += 1) {
      const operation = batch[index] as CounterOperation;
      if (operation.guard === undefined) {
        counts.push(this.#step(operation, operation.hits, now));
        continue;
      }
      const guarded = batch.slice(index, index + operation.guard.operations);
      for (const count of this.#guardedStep(guarded, now)) counts.push(count);
      index += guarded.length - 1;
    }
    return of(counts);
  }

  close(): Promise<void> {
    clearInterval(this.#sweeper);
    return Promise.resolve();
  }

  /** One step over all of them: when any would go over its limit, only those that do are added. */
  #guardedStep(operations: readonly CounterOperation[], now: number): Count[] {
    const goesOver = operations.map(({ key, hits, limit }) => this.#counts.get(key, now) + hits > limit);
    const isAnyOver = goesOver.includes(true);
    return operations.map((operation, index) =>
      this.#step(operation, isAnyOver && !goesOver[index] ? 0 : operation.hits, now),
    );
  }

  #step({ key, windowSeconds }: CounterOperation, hits: number, now: number): Count {
    if (hits < 0) return this.#counts.subtract(key, -hits, now);
    if (hits === 0) return this.#counts.get(key, now);
    return (
      this.#counts.add(key, hits, now, windowSeconds * 1000) ??
      new DecisionError('store_failed', 'a counter has reached 2^53 and cannot count further')
    );
  }
}

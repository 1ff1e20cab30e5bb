import { NEVER, type Observable, of } from 'rxjs';
import type { Count, CounterOperation } from '../../../limiter/counter-operation';
import { DecisionError } from '../../../limiter/decision-error';
import { guardedHits } from '../../../limiter/guards';
import type { CounterLane, Counters, LanePipeline } from '../../../streams/ports/counters';
import { ExpiringCounts } from './expiring-counts';

export interface MemoryCountersOptions {
  /** How many keys are held at most: MEMORY_MAX_KEYS. */
  readonly maxKeys: number;
  /** How long a pipeline window gathers, in milliseconds. */
  readonly windowSpan?: number;
  /** Unix time in milliseconds. */
  readonly now: () => number;
}

/** How often expired keys are removed when no operation does, in milliseconds. */
const SWEEP_INTERVAL = 1000;
/** Most keys of one sweep, so that a burst of expiries does not delay decisions. */
const SWEEP_KEYS = 20_000;

/**
 * Counters in the memory of this process: not shared with other processes, lost at a restart. A key is removed when its
 * window has passed; beyond `maxKeys` the keys that would expire first are evicted, and their counts start again at 0.
 */
export class MemoryCounters implements Counters, CounterLane {
  readonly connected$: Observable<boolean> = of(true);
  readonly pipeline: LanePipeline;
  readonly instance = { lanesAtOnce: 1 };
  readonly retired$ = NEVER;
  readonly #counts: ExpiringCounts;
  readonly #now: () => number;
  readonly #sweeper: NodeJS.Timeout;

  constructor({ maxKeys, windowSpan = 0, now }: MemoryCountersOptions) {
    this.pipeline = { span: windowSpan, windowsInFlight: 1, whenFull: undefined };
    this.#counts = new ExpiringCounts(maxKeys);
    this.#now = now;
    this.#sweeper = setInterval(() => this.#counts.expire(this.#now(), SWEEP_KEYS), SWEEP_INTERVAL);
    this.#sweeper.unref();
  }

  /** How many keys are held. */
  get size(): number {
    return this.#counts.size;
  }

  /** How many keys have been evicted before their expiry. */
  get evictions(): number {
    return this.#counts.evictions;
  }

  /** The one lane of this store. */
  laneOf(): CounterLane {
    return this;
  }

  apply(batch: readonly CounterOperation[]): Observable<readonly Count[]> {
    const now = this.#now();
    const counts: Count[] = [];
    for (let index = 0; index < batch.length; index += 1) {
      const operation = batch[index] as CounterOperation;
      if (operation.guard === undefined) {
        counts.push(this.#applyOne(operation, operation.hits, now));
        continue;
      }
      const guarded = batch.slice(index, index + operation.guard.operations);
      for (const count of this.#applyGuarded(guarded, now)) counts.push(count);
      index += guarded.length - 1;
    }
    return of(counts);
  }

  close(): Promise<void> {
    clearInterval(this.#sweeper);
    return Promise.resolve();
  }

  /** When any operation would exceed its limit, only those that do are counted, and the others are read. */
  #applyGuarded(operations: readonly CounterOperation[], now: number): Count[] {
    const hits = guardedHits(operations, (key) => this.#counts.get(key, now));
    return operations.map((operation, index) => this.#applyOne(operation, hits[index] as number, now));
  }

  #applyOne({ key, windowSeconds }: CounterOperation, hits: number, now: number): Count {
    if (hits < 0) return this.#counts.subtract(key, -hits, now);
    if (hits === 0) return this.#counts.get(key, now);
    return (
      this.#counts.add(key, hits, now, windowSeconds * 1000) ??
      new DecisionError('store_failed', 'a counter has reached 2^53 and cannot count further')
    );
  }
}

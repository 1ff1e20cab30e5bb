import type { Redis } from 'ioredis';
import type { Count, CounterOperation } from '../../../src/limiter/counter-operation';
import { DecisionError } from '../../../src/limiter/decision-error';
import type { Counters } from '../../../src/streams/ports/counters';
import { LaneClient } from '../../support/clients/lane-client';

/** The result of one operation for its caller. */
export type Result = 'OK' | DecisionError['code'];

const FRESH_KEYS = 4;
/** Milliseconds between the calls of one caller: calls fail immediately while the store is unavailable. */
const PAUSE = 1;

let runs = 0;

/**
 * Callers that continue through faults. Every key but one gets one hit, so a count of 2 is a hit that was applied twice; the
 * hot key gets a hit from every call, so no two calls may return the same count of it.
 */
export class Load {
  readonly #client: LaneClient;
  readonly results = new Map<Result, number>();
  readonly unexpected: unknown[] = [];
  /** By key: whether its only hit returned a count. */
  readonly keys = new Map<string, boolean>();
  readonly hotCounts: number[] = [];
  longestWait = 0;
  readonly hotKey: string;
  readonly #prefix: string;
  #stopped = false;
  #calls: Promise<void>[] = [];
  #serial = 0;
  #streak = 0;

  constructor(counters: Counters) {
    this.#client = new LaneClient(counters);
    runs += 1;
    this.#prefix = `load_${process.pid}_${runs}_`;
    this.hotKey = `${this.#prefix}hot`;
  }

  start(callers = 4): this {
    this.#calls = Array.from({ length: callers }, () => this.#call());
    return this;
  }

  /** Starts {@link streak} again at 0. */
  restartStreak(): void {
    this.#streak = 0;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#calls);
  }

  /** Successful operations since the last failure. */
  get streak(): number {
    return this.#streak;
  }

  count(result: Result): number {
    return this.results.get(result) ?? 0;
  }

  /** The kinds of results so far. */
  get seen(): readonly Result[] {
    return [...this.results.keys()];
  }

  /**
   * Compares the results with the counts in the store.
   *
   * @param stored the count of each of the keys, in order; 0 for an absent key
   */
  mistakes(stored: readonly number[]): Mistakes {
    const appliedTwice: string[] = [];
    let lost = 0;
    let failedButApplied = 0;
    [...this.keys].forEach(([key, isOk], index) => {
      const count = stored[index] ?? 0;
      if (count > 1) appliedTwice.push(key);
      if (isOk && count === 0) lost += 1;
      if (!isOk && count === 1) failedButApplied += 1;
    });
    const wrongCounts = this.hotCounts.length - new Set(this.hotCounts).size;
    return { appliedTwice, lost, failedButApplied, wrongCounts, unexpected: this.unexpected };
  }

  async #call(): Promise<void> {
    while (!this.#stopped) {
      const fresh = Array.from({ length: FRESH_KEYS }, () => `${this.#prefix}${(this.#serial += 1)}`);
      const batch = [...fresh, this.hotKey].map((key): CounterOperation => ({
        key,
        hits: 1,
        windowSeconds: 3600,
        guard: undefined,
        limit: 0,
      }));
      await Promise.all(batch.map((operation) => this.#send(operation)));
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }

  /** Each operation is a call of its own, as the operations of one call wait for each other. */
  async #send(operation: CounterOperation): Promise<void> {
    const begin = performance.now();
    let count: Count;
    try {
      [count] = (await this.#client.call([operation])) as [number];
    } catch (error) {
      if (!(error instanceof DecisionError)) this.unexpected.push(error);
      count = error as DecisionError;
    }
    this.longestWait = Math.max(this.longestWait, performance.now() - begin);
    this.#record(operation.key, count);
  }

  #record(key: string, count: Count): void {
    const result = typeof count === 'number' ? 'OK' : count.code;
    this.results.set(result, this.count(result) + 1);
    this.#streak = result === 'OK' ? this.#streak + 1 : 0;
    if (key === this.hotKey) {
      if (typeof count === 'number') this.hotCounts.push(count);
      return;
    }
    this.keys.set(key, typeof count === 'number');
    if (typeof count === 'number' && count !== 1) this.unexpected.push(`${key} counts ${count}`);
  }
}

export interface Mistakes {
  /** Keys whose only hit was counted more than once. */
  readonly appliedTwice: readonly string[];
  /** Hits that returned a count and are missing in the store. */
  readonly lost: number;
  /** Hits that failed for the caller and were counted nevertheless: unavoidable when a reply is lost. */
  readonly failedButApplied: number;
  /** Calls that returned a count of the hot key that another call had returned. */
  readonly wrongCounts: number;
  readonly unexpected: readonly unknown[];
}

/** The counts that a server holds for these keys, read by the test's own client; 0 for an absent key. */
export async function storedCounts(control: Redis, keys: readonly string[]): Promise<readonly number[]> {
  const counts: number[] = [];
  for (let begin = 0; begin < keys.length; begin += 1000) {
    const part = keys.slice(begin, begin + 1000);
    if (part.length > 0) counts.push(...(await control.mget(...part)).map(Number));
  }
  return counts;
}

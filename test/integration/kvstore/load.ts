import type { Redis } from 'ioredis';
import { DecisionError } from '../../../src/counting/decision-error';
import type { Counters } from '../../../src/streams/ports/counters';
import { LaneClient } from '../../support/clients/lane-client';
import { until } from '../../support/waiting/until';
import { operation } from '../counters/scenarios';

/** The result of one operation for its caller. */
type Result = 'OK' | DecisionError['code'];

const FRESH_KEYS = 4;
/** Milliseconds between the calls of one caller: calls fail immediately while the store is unavailable. */
const PAUSE = 1;

let runs = 0;

/**
 * Callers that continue through faults. Every key but one gets one hit, so a count of 2 is a hit that was applied
 * twice; the hot key gets a hit from every call, so no two calls may return the same count of it.
 */
export class Load {
  readonly #client: LaneClient;
  readonly #results = new Map<Result, number>();
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

  start(callers: number): void {
    this.#calls = Array.from({ length: callers }, () => this.#call());
  }

  /** Waits until that many operations have succeeded in succession, and stops. */
  async recovers(streak: number): Promise<void> {
    this.#streak = 0;
    await until('all calls succeed again', () => this.#streak > streak);
    await this.stop();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#calls);
  }

  count(result: Result): number {
    return this.#results.get(result) ?? 0;
  }

  /** The kinds of results so far. */
  get seen(): readonly Result[] {
    return [...this.#results.keys()];
  }

  /**
   * Compares the results with the counts in the store: keys whose only hit was counted more than once, hits that
   * returned a count and are missing in the store, and calls that returned a count of the hot key that another one had
   * returned.
   *
   * @param stored the count of each of the keys, in order; 0 for an absent key
   */
  mistakes(stored: readonly number[]) {
    const found = [...this.keys].map(([key, isOk], index) => ({ key, isOk, count: stored[index] ?? 0 }));
    return {
      appliedTwice: found.filter(({ count }) => count > 1).map(({ key }) => key),
      lost: found.filter(({ isOk, count }) => isOk && count === 0).length,
      wrongCounts: this.hotCounts.length - new Set(this.hotCounts).size,
      unexpected: this.unexpected,
    };
  }

  async #call(): Promise<void> {
    while (!this.#stopped) {
      const fresh = Array.from({ length: FRESH_KEYS }, () => `${this.#prefix}${(this.#serial += 1)}`);
      // Each operation is a call of its own, as the operations of one call wait for each other.
      await Promise.all([...fresh, this.hotKey].map((key) => this.#send(key)));
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }

  async #send(key: string): Promise<void> {
    const begin = performance.now();
    const hit = operation(key, 1, { lengthSeconds: 3600 });
    const count = await this.#client.call([hit]).then(
      ([result]) => result!,
      (error: DecisionError) => error,
    );
    this.longestWait = Math.max(this.longestWait, performance.now() - begin);
    this.#record(key, count);
  }

  #record(key: string, count: number | DecisionError): void {
    if (count instanceof Error && !(count instanceof DecisionError)) this.unexpected.push(count);
    const result = count instanceof DecisionError ? count.code : 'OK';
    this.#results.set(result, this.count(result) + 1);
    this.#streak = result === 'OK' ? this.#streak + 1 : 0;
    if (key === this.hotKey) {
      if (typeof count === 'number') this.hotCounts.push(count);
      return;
    }
    this.keys.set(key, typeof count === 'number');
    if (typeof count === 'number' && count !== 1) this.unexpected.push(`${key} counts ${count}`);
  }
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

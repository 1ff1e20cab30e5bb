import { firstValueFrom } from 'rxjs';
import type { Count, CounterOperation } from '../../../src/limiter/counter-operation';
import { DecisionError } from '../../../src/limiter/decision-error';
import type { Counters } from '../../../src/streams/ports/counters';

/** What callers of one moment saw. */
export type Answer = 'OK' | DecisionError['code'];

const FRESH_KEYS = 4;
/** Failures are instant while a store is away; callers of the real service come at their own pace. */
const PAUSE = 1;

let runs = 0;

/**
 * Calls that go on whatever happens. Every key but one is counted on once, so that a count of 2 is a hit that was applied
 * twice; the one is counted on by all, so that no two good answers may give it the same count.
 */
export class Load {
  readonly #counters: Counters;
  readonly answers = new Map<Answer, number>();
  readonly unexpected: unknown[] = [];
  /** By key: whether its only hit was answered with a count. */
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
    this.#counters = counters;
    runs += 1;
    this.#prefix = `load_${process.pid}_${runs}_`;
    this.hotKey = `${this.#prefix}hot`;
  }

  start(callers = 4): this {
    this.#calls = Array.from({ length: callers }, () => this.#call());
    return this;
  }

  /** Begins to count good answers in a row anew. */
  restartStreak(): void {
    this.#streak = 0;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#calls);
  }

  /** Good answers since the last that was none. */
  get streak(): number {
    return this.#streak;
  }

  count(answer: Answer): number {
    return this.answers.get(answer) ?? 0;
  }

  /** The kinds of answer so far. */
  get seen(): readonly Answer[] {
    return [...this.answers.keys()];
  }

  /**
   * Compares with what the store holds.
   *
   * @param stored the count of each of the keys, in order; 0 for one that is absent
   */
  mistakes(stored: readonly number[]): Mistakes {
    const appliedTwice: string[] = [];
    let lost = 0;
    let failedYetApplied = 0;
    [...this.keys].forEach(([key, isOk], index) => {
      const count = stored[index] ?? 0;
      if (count > 1) appliedTwice.push(key);
      if (isOk && count === 0) lost += 1;
      if (!isOk && count === 1) failedYetApplied += 1;
    });
    const wrongCounts = this.hotCounts.length - new Set(this.hotCounts).size;
    return { appliedTwice, lost, failedYetApplied, wrongCounts, unexpected: this.unexpected };
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
      const begin = performance.now();
      let counts: readonly Count[];
      try {
        counts = await firstValueFrom(this.#counters.apply(batch));
      } catch (error) {
        if (!(error instanceof DecisionError)) this.unexpected.push(error);
        counts = batch.map(() => error as DecisionError);
      }
      this.longestWait = Math.max(this.longestWait, performance.now() - begin);
      counts.forEach((count, index) => this.#record(batch[index]?.key as string, count));
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }

  #record(key: string, count: Count): void {
    const answer = typeof count === 'number' ? 'OK' : count.code;
    this.answers.set(answer, this.count(answer) + 1);
    this.#streak = answer === 'OK' ? this.#streak + 1 : 0;
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
  /** Hits that were answered with a count and are not there. */
  readonly lost: number;
  /** Hits that failed for the caller and are there all the same: unavoidable when a reply is lost. */
  readonly failedYetApplied: number;
  /** Good answers that gave the same count of the one key. */
  readonly wrongCounts: number;
  readonly unexpected: readonly unknown[];
}

import { NEVER, type Observable, of } from 'rxjs';
import { type Algorithm, type LimitState, decideTogether } from '../../../limiter/algorithm';
import {
  type CounterOperation,
  type DecidedOperation,
  decideAllOrNothing,
  decideOn,
  guardedHits,
} from '../../../limiter/counter-operation';
import { windowStart } from '../../../limiter/cache-key';
import { ConditionLog } from '../../../log/condition-log';
import type { CounterAdministration, CounterKey, StoredCounter } from '../../../streams/ports/counter-administration';
import type { CounterLane, Counters, LanePipeline } from '../../../streams/ports/counters';
import type { Log } from '../../../log/log';
import type {
  OpenReservations,
  ReservationChange,
  ReservationResult,
  ReservationStore,
} from '../../../streams/ports/reservations';
import { tableKey } from '../../../text/table-key';
import { ExpiringCounts, type ExpiringCountsOptions } from '../../../limiter/expiring-counts';
import { MemoryReservations, type ReservationBounds } from './memory-reservations';

export interface MemoryCountersOptions extends ExpiringCountsOptions {
  /** How long a pipeline window gathers, in milliseconds. */
  readonly windowSpan?: number;
  /** Undefined: the usual ones. */
  readonly reservations?: ReservationBounds | undefined;
  /** Unix time in milliseconds. */
  readonly now: () => number;
  /** Where it is logged that counters are evicted whose window lasts; undefined: nowhere. */
  readonly log?: Log;
}

/** How often expired keys are removed, in milliseconds. */
const SWEEP_INTERVAL = 1000;
/** For how many sweeps a time that the clock has shown counts as one that may be right. */
const CONFIRMING_SWEEPS = 60;
/** Milliseconds without an eviction after which there is room again. */
const QUIET = 60_000;
/** How many rules are named that evict most. */
const NAMED_RULES = 3;
/** Milliseconds that keys are kept after their window: a hit may be counted a moment after its request was matched. */
const GRACE = 1000;

/**
 * Counters in the memory of this process: not shared with other processes, lost at a restart. A key is removed when its
 * window has passed; beyond `maxKeys` and `maxBytes` the keys whose window ends first are evicted, and start again at 0.
 *
 * The clock may jump. A cache key contains its window, so the count of a key that is present is always right, and time only decides
 * which keys are removed: those of windows that have passed, and those of windows that have not begun because the clock went back.
 * They are removed when that is so by each time that the clock has shown within a minute, as it would have gone on evenly from there. So a
 * clock that is wrong for a moment ends no window, and one that jumps again and again does not keep ended windows.
 */
export class MemoryCounters implements Counters, CounterLane, CounterAdministration, ReservationStore {
  readonly connected$: Observable<boolean> = of(true);
  readonly pipeline: LanePipeline;
  readonly instance = { lanesAtOnce: 1 };
  readonly retired$ = NEVER;
  /** Undefined if windows are to gather for a time: their merged operations then cost less. */
  readonly countNow: ((operations: readonly DecidedOperation[]) => void) | undefined;
  readonly #counts: ExpiringCounts;
  readonly #reservations: MemoryReservations;
  readonly #now: () => number;
  readonly #grace: number;
  readonly #sweeper: NodeJS.Timeout;
  readonly #noRoom: ConditionLog | undefined;
  /** By how much the clock was ahead of the process's own time at the last sweeps, in milliseconds, the oldest first. */
  readonly #leads: number[] = [];
  /** The keys that operations have evicted since the last sweep, by the rule of the operation. */
  readonly #evictors = new Map<string | undefined, number>();
  /** What a sweep has left for the next turns. */
  #ending: Generator | undefined;
  /** The evictions at the last sweep. */
  #logged = 0;

  constructor({ windowSpan = 0, now, reservations, log, ...bounds }: MemoryCountersOptions) {
    this.pipeline = { span: windowSpan, windowsInFlight: 1, whenFull: undefined };
    this.countNow = windowSpan === 0 ? (operations) => this.#countNow(operations) : undefined;
    this.#counts = new ExpiringCounts(bounds);
    this.#reservations = new MemoryReservations(this.#counts, reservations);
    this.#now = now;
    this.#noRoom = log && noRoomLog(log, bounds);
    this.#leads.push(now() - performance.now());
    this.#grace = GRACE + windowSpan;
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_INTERVAL);
    this.#sweeper.unref();
  }

  /** How many keys are held. */
  get size(): number {
    return this.#counts.size;
  }

  /** The estimated memory of the keys and their counts. */
  get bytes(): number {
    return this.#counts.bytes;
  }

  /** How many keys have been evicted while their window lasted. */
  get evictions(): number {
    return this.#counts.evictions;
  }

  /** The one lane of this store. */
  laneOf(): CounterLane {
    return this;
  }

  apply(batch: readonly CounterOperation[]): Observable<readonly (number | LimitState)[]> {
    return of(this.applyNow(batch));
  }

  /** Applies a batch as {@link apply} does, before it returns. */
  applyNow(batch: readonly CounterOperation[]): readonly (number | LimitState)[] {
    const now = this.#now();
    // Of its final length, so that it does not have to grow.
    const counts = new Array<number | LimitState>(batch.length);
    let { evictions } = this;
    for (let index = 0; index < batch.length; index += 1) {
      const operation = batch[index] as CounterOperation;
      if (evictions !== this.evictions) evictions = this.#evictedBy(batch[index - 1] as CounterOperation, evictions);
      if (operation.guard === undefined) {
        const { algorithm } = operation;
        counts[index] =
          algorithm === undefined
            ? this.#applyOne(operation, operation.hits, now)
            : this.#decide(operation, algorithm, now);
        continue;
      }
      const group = batch.slice(index, index + operation.guard.operations);
      const counted =
        operation.algorithm === undefined ? this.#applyGuarded(group, now) : this.#decideTogether(group, now);
      for (let at = 0; at < counted.length; at += 1) counts[index + at] = counted[at] as number | LimitState;
      index += counted.length - 1;
    }
    if (evictions !== this.evictions) this.#evictedBy(batch.at(-1) as CounterOperation, evictions);
    return counts;
  }

  readCounter(counter: CounterKey): Promise<StoredCounter> {
    return Promise.resolve(this.#stored(counter));
  }

  setCounter(counter: CounterKey, count: number): Promise<StoredCounter> {
    const before = this.#stored(counter);
    this.#counts.set(tableKey(counter.key), count, this.#now(), counter.windowSeconds);
    return Promise.resolve(before);
  }

  clearCounter(counter: CounterKey): Promise<StoredCounter> {
    const before = this.#stored(counter);
    this.#counts.remove(tableKey(counter.key));
    return Promise.resolve(before);
  }

  readRecord(key: string): Promise<string | undefined> {
    return Promise.resolve(this.#reservations.read(key));
  }

  changeReservation(change: ReservationChange): Promise<ReservationResult> {
    return Promise.resolve(this.#reservations.change(change));
  }

  readOpen({ key }: CounterKey, now: number): Promise<OpenReservations> {
    return Promise.resolve(this.#reservations.open(key, now));
  }

  /** Removes the keys of windows that are not that of the present, and what reservations hold that have expired. */
  removeExpired(): void {
    const now = this.#now();
    const ending = this.#reservations.removeExpired(now);
    while (ending.next().done !== true);
    this.#counts.removeOutside(now - this.#grace, now);
  }

  close(): Promise<void> {
    clearInterval(this.#sweeper);
    return Promise.resolve();
  }

  #countNow(operations: readonly DecidedOperation[]): void {
    const counts = this.applyNow(operations);
    for (let index = 0; index < counts.length; index += 1) {
      const count = counts[index] as number | LimitState;
      const operation = operations[index] as DecidedOperation;
      if (typeof count === 'number') operation.after = count;
      else if (operation.guard === undefined) decideOn(operation, count);
      else {
        const end = index + operation.guard.operations;
        decideAllOrNothing(operations.slice(index, end), counts.slice(index, end) as LimitState[]);
        index = end - 1;
      }
    }
  }

  #stored({ key: cacheKey, windowSeconds }: CounterKey): StoredCounter {
    const key = tableKey(cacheKey);
    const count = this.#counts.get(key);
    if (count === 0) return { count, timeToLive: null };
    const now = this.#now() / 1000;
    return { count, timeToLive: Math.ceil(windowStart(Math.floor(now), windowSeconds) + windowSeconds - now) };
  }

  #sweep(): void {
    const own = performance.now();
    this.#leads.push(this.#now() - own);
    if (this.#leads.length > CONFIRMING_SWEEPS) this.#leads.shift();
    const earliest = own + Math.min(...this.#leads);
    if (this.#ending === undefined) this.#endExpired((this.#ending = this.#reservations.removeExpired(earliest)));
    this.#counts.removeOutside(earliest - this.#grace, own + Math.max(...this.#leads));
    this.#logEvictions();
  }

  /** In turns: calls that arrive meanwhile do not wait for all that have expired. */
  #endExpired(ending: Generator): void {
    if (ending.next().done === true) this.#ending = undefined;
    else setImmediate(() => this.#endExpired(ending));
  }

  /** @param before the evictions before an operation. Returns those after it. */
  #evictedBy({ rule }: CounterOperation, before: number): number {
    const { evictions } = this;
    if (this.#noRoom !== undefined) this.#evictors.set(rule, (this.#evictors.get(rule) ?? 0) + evictions - before);
    return evictions;
  }

  #logEvictions(): void {
    const { evictions } = this;
    if (evictions === this.#logged) return this.#noRoom?.ended({ evicted_keys: evictions });
    this.#logged = evictions;
    const most = [...this.#evictors].sort(([, one], [, other]) => other - one).slice(0, NAMED_RULES);
    const rules = most.flatMap(([rule, evicted]) => {
      return rule === undefined ? [] : `${rule === '' ? 'limits in requests' : rule} (${evicted})`;
    });
    this.#noRoom?.occurred(rules.length === 0 ? {} : { rules: rules.join(', ') });
    this.#evictors.clear();
  }

  /** When any operation would exceed its limit, only those that do are counted, and the others are read. */
  #applyGuarded(operations: readonly CounterOperation[], now: number): number[] {
    const hits = guardedHits(operations, (key) => this.#counts.get(tableKey(key)));
    return operations.map((operation, index) => this.#applyOne(operation, hits[index] as number, now));
  }

  /** Decides the calls of an operation, and returns the state before them. */
  #decide({ key: cacheKey, hits, calls = [hits] }: CounterOperation, algorithm: Algorithm, now: number): LimitState {
    const key = tableKey(cacheKey);
    const stored = this.#counts.state(key);
    const before = stateAt(stored, algorithm, now);
    let state = before;
    for (const each of calls) state = algorithm.decide(state, each).state;
    // What is given back to a key that is absent leaves it absent. A known one is set in any case: the clock may have gone back.
    if (stored !== undefined || state !== before) this.#counts.setState(key, state, now, algorithm.lifetime);
    return before;
  }

  /** Decides the calls of operations with a common guard, and returns the states before them. */
  #decideTogether(group: readonly CounterOperation[], now: number): readonly LimitState[] {
    const limits = group.map((operation) => {
      const [key, algorithm] = [tableKey(operation.key), operation.algorithm as Algorithm];
      const stored = this.#counts.state(key);
      return { key, algorithm, stored, before: stateAt(stored, algorithm, now) };
    });
    let states = limits.map(({ before }) => before);
    const { hits, calls = [hits] } = group[0]!;
    for (const each of calls) states = decideTogether(limits, states, each).map(({ state }) => state);
    limits.forEach(({ key, algorithm, stored, before }, index) => {
      const state = states[index]!;
      // As above.
      if (stored !== undefined || state !== before) this.#counts.setState(key, state, now, algorithm.lifetime);
    });
    return limits.map(({ before }) => before);
  }

  #applyOne({ key, windowSeconds }: CounterOperation, hits: number, now: number): number {
    return this.#counts.change(tableKey(key), hits, now, windowSeconds);
  }
}

function noRoomLog(log: Log, { maxKeys, maxBytes = Infinity }: ExpiringCountsOptions): ConditionLog {
  return new ConditionLog(log, {
    begins:
      'counters in memory have no room: those evicted start again at zero, so that more passes than the limits allow',
    ends: 'counters in memory have room again',
    fields: { memory_max_keys: maxKeys, memory_max_bytes: maxBytes },
    quiet: { milliseconds: QUIET, now: () => performance.now() },
  });
}

function stateAt(stored: LimitState | undefined, algorithm: Algorithm, now: number): LimitState {
  return stored === undefined ? algorithm.empty(now * 1000) : algorithm.at(stored, now * 1000);
}

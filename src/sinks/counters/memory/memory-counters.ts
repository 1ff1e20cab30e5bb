import { NEVER, type Observable, of } from 'rxjs';
import type { LimitState } from '../../../counting/algorithms/algorithm';
import { ExpiringCounts, type ExpiringCountsOptions, TimedCounts } from '../../../counting/counts';
import type { Counted, Operation, Stored } from '../../../counting/operation';
import { run, simulate } from '../../../counting/simulate';
import { windowEnd } from '../../../counting/windows';
import { ConditionLog } from '../../../log/condition-log';
import type { CounterAdministration, StoredCounter } from '../../../streams/ports/counter-administration';
import type { CounterLane, Counters, LanePipeline } from '../../../streams/ports/counters';
import type { Log } from '../../../log/log';
import type {
  OpenReservations,
  ReservationChange,
  ReservationResult,
  ReservationStore,
} from '../../../streams/ports/reservations';
import { tableKey } from '../../../text/table-key';
import { MemoryReservations, type ReservationBounds } from './memory-reservations';

export interface MemoryCountersOptions extends ExpiringCountsOptions {
  /** How long a pipeline window gathers, in milliseconds. */
  readonly windowSpan?: number;
  /** Undefined: the usual ones. */
  readonly reservations?: ReservationBounds | undefined;
  /** Called for each counter to which a reservation gives back that has expired. */
  readonly onGivenBack?: () => void;
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
 * window has passed; beyond `maxKeys` and `maxBytes` the keys whose window ends first are evicted, and start again at
 * 0.
 *
 * The clock may jump. A cache key contains its window, so the count of a key that is present is always right, and time
 * only decides which keys are removed: those of windows that have passed, and those of windows that have not begun
 * because the clock went back. They are removed when that is so by each time that the clock has shown within a minute,
 * as it would have gone on evenly from there. So a clock that is wrong for a moment ends no window, and one that jumps
 * again and again does not keep ended windows.
 */
export class MemoryCounters implements Counters, CounterLane, CounterAdministration, ReservationStore {
  readonly connected$: Observable<boolean> = of(true);
  readonly pipeline: LanePipeline;
  readonly instance = { lanesAtOnce: 1 };
  readonly retired$ = NEVER;
  /** Undefined if windows are to gather for a time: their merged operations then cost less. */
  readonly countNow: ((operations: readonly Operation[]) => void) | undefined;
  readonly #counts: ExpiringCounts;
  readonly #table: EvictingCounts;
  readonly #reservations: MemoryReservations;
  readonly #now: () => number;
  readonly #grace: number;
  readonly #sweeper: NodeJS.Timeout;
  readonly #noRoom: ConditionLog | undefined;
  /**
   * By how much the clock was ahead of the process's own time at the last sweeps, in milliseconds, the oldest first.
   */
  readonly #leads: number[] = [];
  /** What a sweep has left for the next turns. */
  #ending: Generator | undefined;
  /** The evictions at the last sweep. */
  #logged = 0;

  constructor({ windowSpan = 0, now, reservations, onGivenBack, log, ...bounds }: MemoryCountersOptions) {
    this.pipeline = { span: windowSpan, windowsInFlight: 1, whenFull: undefined };
    this.#counts = new ExpiringCounts(bounds);
    this.#reservations = new MemoryReservations(this.#counts, {
      ...(reservations && { bounds: reservations }),
      ...(onGivenBack && { onGivenBack }),
    });
    this.#table = new EvictingCounts(this.#counts, this.#reservations);
    this.countNow =
      windowSpan === 0
        ? (operations) => {
            this.#table.now = now();
            simulate(operations, this.#table);
          }
        : undefined;
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

  apply(batch: readonly Operation[]): PromiseLike<readonly Stored[]> {
    return settled(this.applyNow(batch));
  }

  /** Applies a batch as {@link apply} does, before it returns. */
  applyNow(batch: readonly Operation[]): readonly Stored[] {
    this.#table.now = this.#now();
    return run(batch, this.#table);
  }

  readCounter(counter: Counted): Promise<StoredCounter> {
    return Promise.resolve(this.#stored(counter));
  }

  changeCounter(counter: Counted, count: number | null): Promise<StoredCounter> {
    const before = this.#stored(counter);
    const key = tableKey(counter.key);
    if (count === null) this.#counts.remove(key);
    else this.#counts.set(key, count, this.#now(), counter.limit);
    return Promise.resolve(before);
  }

  readRecord(key: string): Promise<string | undefined> {
    return Promise.resolve(this.#reservations.read(key));
  }

  changeReservation(change: ReservationChange): Promise<ReservationResult> {
    return Promise.resolve(this.#reservations.change(change, this.#now()));
  }

  readOpen({ key }: Counted, now: number): Promise<OpenReservations> {
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

  #stored({ key: cacheKey, limit }: Counted): StoredCounter {
    const key = tableKey(cacheKey);
    const count = this.#counts.get(key);
    if (count === 0) return { count, timeToLive: null };
    const now = this.#now() / 1000;
    return { count, timeToLive: Math.ceil(windowEnd(limit, Math.floor(now)) - now) };
  }

  #sweep(): void {
    const own = performance.now();
    this.#leads.push(this.#now() - own);
    if (this.#leads.length > CONFIRMING_SWEEPS) this.#leads.shift();
    // A bucket has whole microseconds.
    const earliest = Math.floor(own + Math.min(...this.#leads));
    if (this.#ending === undefined) this.#endExpired((this.#ending = this.#reservations.removeExpired(earliest)));
    this.#counts.removeOutside(earliest - this.#grace, own + Math.max(...this.#leads));
    this.#logEvictions();
  }

  /** In turns: calls that arrive meanwhile do not wait for all that have expired. */
  #endExpired(ending: Generator): void {
    if (ending.next().done === true) this.#ending = undefined;
    else setImmediate(() => this.#endExpired(ending));
  }

  #logEvictions(): void {
    const { evictions } = this;
    if (evictions === this.#logged) return this.#noRoom?.ended({ evicted_keys: evictions });
    this.#logged = evictions;
    const most = [...this.#table.evictors].sort(([, one], [, other]) => other - one).slice(0, NAMED_RULES);
    const rules = most.flatMap(([rule, evicted]) => {
      return rule === undefined ? [] : `${rule === '' ? 'limits in requests' : rule} (${evicted})`;
    });
    this.#noRoom?.occurred(rules.length === 0 ? {} : { rules: rules.join(', ') });
    this.#table.evictors.clear();
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

/**
 * The counts, and the keys that were evicted for lack of room since the last look, by the rule of the operation that
 * has evicted them.
 */
class EvictingCounts extends TimedCounts {
  readonly evictors = new Map<string | undefined, number>();
  readonly #reservations: MemoryReservations;

  constructor(counts: ExpiringCounts, reservations: MemoryReservations) {
    super(counts);
    this.#reservations = reservations;
  }

  override stateOf(counter: Counted): LimitState {
    if (counter.limit.algorithm?.name !== 'max_concurrent') return super.stateOf(counter);
    const current = this.#reservations.openAt(tableKey(counter.key), this.now);
    return { previous: 0, current, now: this.now * 1000 };
  }

  override add(counter: Counted, hits: number): number {
    const { evictions } = this.counts;
    const after = super.add(counter, hits);
    if (evictions !== this.counts.evictions) this.#evicted(counter, evictions);
    return after;
  }

  override keep(counter: Counted, state: LimitState, before: LimitState): void {
    const { evictions } = this.counts;
    super.keep(counter, state, before);
    if (evictions !== this.counts.evictions) this.#evicted(counter, evictions);
  }

  #evicted({ limit: { path } }: Counted, before: number): void {
    this.evictors.set(path, (this.evictors.get(path) ?? 0) + this.counts.evictions - before);
  }
}

/**
 * A result that is there: `then` calls back before it returns, so that what replays calls sees each answered in its
 * turn.
 */
function settled<T>(value: T): PromiseLike<T> {
  return {
    then: <Next, Caught>(next?: ((value: T) => Next | PromiseLike<Next>) | null) =>
      settled(next?.(value)) as PromiseLike<Next | Caught>,
  };
}

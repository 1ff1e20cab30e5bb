import type { Outcome } from '../counting/algorithms/algorithm';
import { type Counted, LARGEST_COUNT, type Operation, readOf } from '../counting/operation';
import type { Leases } from '../counting/leases';
import { referenceTo } from '../explain/match-trace';
import { RequestExplanation, blockIn, counterLimitOf } from '../explain/request-explanation';
import type { LimitedDescriptor } from '../limiter/resolution';
import type { Limiter } from '../limiter/limiter';
import type { RateLimitRequest } from '../limiter/request';
import type { AlgorithmName } from '../rules/rule-config';
import type { Rule } from '../rules/rule-tree';
import { windowLabel } from '../rules/unit';
import type { Ruleset } from '../rules/ruleset';
import { isoTime } from '../text/iso-time';
import type { CounterAdministration, StoredCounter } from '../streams/ports/counter-administration';
import type { ApplyOperations } from '../streams/ports/decide';
import type { CounterChange, CounterQuery, CounterReservations, CounterState, NoCounter } from './answers';
import type { OpenReservations, ReservationStore } from '../streams/ports/reservations';

export interface CountersOptions {
  readonly limiter: Pick<Limiter, 'trial' | 'forget' | 'isInLocalCache'>;
  /** The hits that this process holds; undefined: it leases none. */
  readonly leases?: Leases | undefined;
  readonly administration: CounterAdministration;
  /** The store of reservations; a text: why there is none. */
  readonly reservations: ReservationStore | string;
  readonly apply: ApplyOperations;
  /** Gives back the hits that are leased of counters, by key; undefined: there are none. */
  readonly release?: (keys: readonly string[]) => Promise<void>;
  /** Called with the key of a counter that was changed, which the local caches of other processes have to forget. */
  readonly onForgotten?: ((cacheKey: string) => void) | undefined;
}

/** The counter of a descriptor in its current window. */
interface Located {
  readonly limited: LimitedDescriptor;
  readonly rule: Rule | undefined;
  /** The windows of all limits of the rule. */
  readonly windows: readonly string[];
  readonly nowSeconds: number;
}

/** Undefined where there can be none, or where they cannot be read: the counter is shown, and changed, even so. */
export async function openReservationsOf(
  counter: Counted,
  reservations: CountersOptions['reservations'],
): Promise<OpenReservations | undefined> {
  if (typeof reservations === 'string' || counter.limit.algorithm?.blockFor !== undefined) return undefined;
  try {
    return await reservations.readOpen(counter, Date.now());
  } catch {
    return undefined;
  }
}

/** The counters of descriptors, for operators. */
export class OperatedCounters {
  readonly #options: CountersOptions;

  constructor(options: CountersOptions) {
    this.#options = options;
  }

  /** @throws DecisionError */
  async read(query: CounterQuery, ruleset: Ruleset | undefined): Promise<CounterState | NoCounter> {
    const located = await this.#locate(query, ruleset);
    if ('reason' in located) return located;
    const { limited } = located;
    return this.#stateOf(located, await this.#read(limited), await this.#reservationsOf(limited));
  }

  /**
   * Gives back what this process holds of a counter that is going to be changed.
   *
   * @throws DecisionError
   */
  async release(query: CounterQuery, ruleset: Ruleset | undefined): Promise<Located | NoCounter> {
    const located = await this.#locate(query, ruleset, true);
    if (!('reason' in located)) await this.#options.release?.([located.limited.key]);
    return located;
  }

  /** @throws DecisionError */
  async change(
    query: CounterQuery,
    count: number | null,
    ruleset: Ruleset | undefined,
  ): Promise<CounterChange | NoCounter> {
    const { limiter, onForgotten } = this.#options;
    const located = await this.release(query, ruleset);
    if ('reason' in located) return located;
    const { limited } = located;
    const before = await this.#set(limited, count);
    limiter.forget(limited.overKey);
    const after = await this.#read(limited);
    // A decision that was in flight may have added the key again.
    limiter.forget(limited.overKey);
    onForgotten?.(limited.overKey);
    return {
      ...this.#stateOf(located, after, await this.#reservationsOf(limited)),
      countBefore: countIn(before, limited.limit.algorithmName ?? null),
    };
  }

  #read(limited: LimitedDescriptor): Promise<StoredCounter | Outcome> {
    if (limited.limit.algorithm !== undefined) return this.#decide(readOf(limited));
    return this.#options.administration.readCounter(limited);
  }

  /** Returns the counter before. */
  #set(limited: LimitedDescriptor, count: number | null): Promise<StoredCounter | Outcome> {
    const { algorithm } = limited.limit;
    if (algorithm === undefined) return this.#options.administration.changeCounter(limited, count);
    const most = Math.min(count ?? 0, algorithm.capacity);
    const used = algorithm.name === 'token_bucket' && count !== null ? algorithm.capacity - most : most;
    // In one step: everything is given back, and as much taken.
    const change = readOf(limited);
    change.calls = [-LARGEST_COUNT, used];
    change.endsBlock = limited.blockKey !== undefined;
    return this.#decide(change);
  }

  async #decide(operation: Operation): Promise<Outcome> {
    await new Promise<void>((settled, failed) => this.#options.apply([operation], { settled, failed }));
    if (operation.failure !== undefined) throw operation.failure;
    return operation.outcome as Outcome;
  }

  async #locate(
    { domain, descriptor, window }: CounterQuery,
    ruleset: Ruleset | undefined,
    mustChoose = false,
  ): Promise<Located | NoCounter> {
    const request: RateLimitRequest = { domain, descriptors: [descriptor], hitsAddend: 0 };
    const trial = this.#options.limiter.trial(request, ruleset, Date.now());
    const { nowSeconds, resolutions } = trial.decision;
    const { limited: first, limits, rule } = resolutions[0]!;
    const all = limits ?? (first === undefined ? [] : [first]);
    const windows = all.map(windowOf);
    const isChosen = limits !== undefined && (window !== undefined || (mustChoose && limits.length > 1));
    const limited = isChosen ? limits.find((each) => windowOf(each) === window) : all[0];
    if (isChosen && limited === undefined) {
      const reason = `the rule has several limits; choose one by the parameter window: ${windows.join(', ')}`;
      return { reason, nearest: null, windows };
    }
    if (mustChoose && limited?.limit.algorithmName === 'max_concurrent')
      return { reason: 'it counts open reservations, which end by themselves or by a call', nearest: null };
    if (limited !== undefined) return { limited, rule, windows, nowSeconds };
    // A descriptor without a limit needs no count.
    const { reason, nearest } = new RequestExplanation(trial, ruleset!, { stored: new Map() }).descriptor(0);
    return { reason, nearest };
  }

  async #reservationsOf(limited: LimitedDescriptor): Promise<CounterReservations | null> {
    const open = await openReservationsOf(limited, this.#options.reservations);
    if (open === undefined) return null;
    return {
      count: open.count,
      first: open.first.map((each) => ({ ...each, expiresAt: isoTime(each.expiresAt / 1000) })),
    };
  }

  #stateOf(
    { limited, rule, windows, nowSeconds }: Located,
    stored: StoredCounter | Outcome,
    openReservations: CounterReservations | null,
  ): CounterState {
    const { limit, key } = limited;
    const { algorithmName: algorithm = null } = limit;
    const [start, end] =
      'state' in stored && algorithm !== null
        ? [nowSeconds, nowSeconds + stored.secondsUntilReset]
        : [limit.startOfWindow(nowSeconds), limit.endOfWindow(nowSeconds)];
    return {
      cacheKey: key,
      rule: referenceTo(rule),
      ...counterLimitOf(limit, nowSeconds),
      window: windowOf(limited),
      windows,
      count: countIn(stored, algorithm),
      overdrawn: limit.overdrawnBy('state' in stored ? stored.used : stored.count),
      leased: limit.lease ? (this.#options.leases?.heldOf(key) ?? 0) : null,
      timeToLive: 'state' in stored ? null : stored.timeToLive,
      windowStart: isoTime(start),
      windowEnd: isoTime(end),
      block: 'state' in stored ? blockIn(stored) : null,
      isInLocalCache: this.#options.limiter.isInLocalCache(limited.overKey, limit.allowance, nowSeconds),
      openReservations,
    };
  }
}

function windowOf({ limit }: LimitedDescriptor): string {
  const { unit, unitMultiplier } = limit;
  return windowLabel(unit.name, unitMultiplier);
}

/** What operators see as the count: see {@link CounterState.count}. */
function countIn(stored: StoredCounter | Outcome, algorithm: AlgorithmName | null): number {
  if (!('state' in stored)) return stored.count;
  return algorithm === 'token_bucket' ? stored.remaining : stored.used;
}

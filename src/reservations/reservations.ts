import { randomUUID } from 'node:crypto';
import type { Decision } from '../limiter/decision';
import type { LimiterOptions } from '../limiter/options';
import { DecisionError } from '../counting/decision-error';
import type { Stored } from '../counting/operation';
import { deciderOf, foundIn } from '../counting/reserved';
import type { Limiter } from '../limiter/limiter';
import type { RateLimitRequest } from '../limiter/request';
import type { LimitedDescriptor } from '../limiter/resolution';
import type { Ruleset } from '../rules/ruleset';
import type { Counter } from '../statistics/counter';
import { STORE_ERRORS, type Statistics } from '../statistics/statistics';
import type { DecisionLog, DecisionSource } from '../streams/in-flight-decision';
import type { Caller } from '../streams/ports/decide';
import {
  type EndedReservation,
  KEPT,
  LONGEST_KNOWN,
  ReservationError,
  type ReservationChange,
  type ReservationResult,
  type ReservationStore,
  type Reservations,
  type ReserveCall,
  type Reserved,
  type StepDone,
} from '../streams/ports/reservations';
import {
  type ReservationRecord,
  type StoredEmpty,
  type StoredRecord,
  digestOf,
  endedDescriptors,
  isSameCall,
  readEmpty,
  readStored,
  withoutCounters,
  writeEmpty,
  writeEnded,
  writeEndedEmpty,
} from './record';
import { ID, checkCall, expired, invalid, reservable, tooMany, unknown } from './refusals';
import { countsBefore, emptyOf, endingOf, recordOf, stepsOf, textOf } from './steps';

export interface ReservationsOptions {
  /** Decides without a local cache, and without STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT. */
  readonly limiter: Limiter;
  readonly options: LimiterOptions;
  readonly ruleset: () => Ruleset | undefined;
  /** The store; a text: why there is none. */
  readonly store: ReservationStore | string;
  readonly statistics: Statistics;
  /** Undefined when decisions are not logged. */
  readonly log?: DecisionLog | undefined;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Gives back the hits that this process has leased of counters, by key; undefined: there are none. */
  readonly release?: (keys: readonly string[]) => Promise<void>;
  /**
   * Called with the key of each counter whose count has fallen, or is below its limit: local caches must not have it as
   * over.
   */
  readonly onFree: (cacheKey: string, isFallen: boolean) => void;
}

/**
 * How often a change is tried that another process interferes with; each time, that process has ended the reservation.
 */
const ATTEMPTS = 3;

/** What becomes of calls, each counted in `ratelimit.reservations.…`. */
const COUNTED = ['reserved', 'denied', 'repeated', 'settled', 'cancelled', 'rejected'] as const;

/** See {@link Reservations}. */
export class StoredReservations implements Reservations {
  readonly #options: ReservationsOptions;
  readonly #storeErrors: Counter;
  readonly #inFlight = new Set<Promise<unknown>>();
  #isComplete = false;
  readonly #counters: Readonly<Record<(typeof COUNTED)[number], Counter>>;

  constructor(options: ReservationsOptions) {
    const { statistics } = options;
    this.#options = options;
    this.#storeErrors = statistics.counter(STORE_ERRORS);
    this.#counters = Object.fromEntries(
      COUNTED.map((what) => [what, statistics.counter(`ratelimit.reservations.${what}`)]),
    ) as Record<(typeof COUNTED)[number], Counter>;
  }

  reserve(call: ReserveCall): Promise<Reserved> {
    return this.#counted(() => this.#reserve(call));
  }

  settle(id: string, hits: number | readonly number[], caller?: Caller): Promise<EndedReservation> {
    return this.#counted(() =>
      this.#end({ id, state: 'settled', caller }, (descriptors) => {
        if (typeof hits === 'number') return Array.from({ length: descriptors }, () => hits);
        if (hits.length === descriptors) return hits;
        throw invalid(`the reservation has ${descriptors} descriptors, hits has ${hits.length} numbers`);
      }),
    );
  }

  cancel(id: string, caller?: Caller): Promise<EndedReservation> {
    return this.#counted(() =>
      this.#end({ id, state: 'cancelled', caller }, (descriptors) => Array.from({ length: descriptors }, () => 0)),
    );
  }

  async complete(): Promise<void> {
    this.#isComplete = true;
    await Promise.allSettled(this.#inFlight);
  }

  async #counted<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isComplete) throw new DecisionError('shutting_down', 'the service is shutting down');
    const done = work();
    this.#inFlight.add(done);
    try {
      return await done;
    } catch (error) {
      const isOfStore = error instanceof DecisionError && error.code.startsWith('store_');
      (isOfStore ? this.#storeErrors : this.#counters.rejected).add(1);
      throw error;
    } finally {
      this.#inFlight.delete(done);
    }
  }

  async #reserve(call: ReserveCall): Promise<Reserved> {
    const { request, ttl, onExpiry, caller } = call;
    const { log } = this.#options;
    checkCall(call);
    const store = this.#store;
    const now = this.#options.now();
    const terms = { ttl, onExpiry };
    const named = call.id === undefined ? undefined : { id: call.id, ...terms };
    const decision = this.#begin(request, now, { caller, reservation: named });
    const operations = reservable(decision, this.#options.options);
    const expiresAt = now + ttl;
    const empty = emptyOf(decision, expiresAt);
    const id = call.id ?? (empty === undefined ? randomUUID() : writeEmpty(empty, randomUUID()));
    const source = { caller, reservation: { id, ...terms } };
    const record = recordOf({ request, ttl, onExpiry, at: now }, decision);
    const { isDenied, steps } = stepsOf(decision.resolutions, { id, onExpiry }, this.#options.options);
    const change = {
      ...{ key: this.#keyOf(id), before: undefined, after: textOf(record, empty, call.id), lifetime: ttl + KEPT, now },
      ...{ opens: { ttl, isDenied, domain: request.domain }, steps },
    };
    await this.#options.release?.(operations.map(({ key }) => key));
    const result = await changed(store, change).catch((error: unknown) => {
      decision.failed();
      if (error instanceof DecisionError) log?.decided(decision, error, source);
      throw error;
    });
    if (result.outcome === 'changed') return this.#again(id, record, { text: result.record, change });
    if (result.outcome !== 'done' && result.outcome !== 'denied') throw tooMany(result, request.domain);
    const isReserved = result.outcome === 'done';
    for (const [index, operation] of operations.entries()) {
      judge(operation, result.steps[index]!, isReserved);
      if (operation.countAfter < operation.limit.capacity) this.#options.onFree(operation.key, false);
    }
    const verdict = decision.verdict();
    log?.decided(decision, verdict, source);
    this.#counters[isReserved ? 'reserved' : 'denied'].add(1);
    return { id: isReserved ? id : undefined, verdict, expiresAt };
  }

  #begin(request: RateLimitRequest, now: number, source: DecisionSource): Decision {
    const { limiter, ruleset, log } = this.#options;
    try {
      return limiter.begin(request, ruleset(), now);
    } catch (error) {
      if (error instanceof DecisionError) log?.rejected(request, error, source);
      throw error;
    }
  }

  /** The answer to a call that was answered before, as if it were the first; nothing is counted. */
  async #again(
    id: string,
    call: ReservationRecord,
    { text = '', change }: { readonly text: string | undefined; readonly change: ReservationChange },
  ): Promise<Reserved> {
    const { limiter, ruleset } = this.#options;
    const empty = readEmpty(text);
    const stored = empty === undefined ? readRecord(text) : undefined;
    if (stored === undefined ? empty!.end !== digestOf(call) : !isSameCall(call, stored.record)) {
      throw new ReservationError('reservation_conflict', 'there is a reservation with this id and another content');
    }
    const { request, at, ttl } = stored?.record ?? call;
    const before = stored === undefined ? await this.#present(change) : countsBefore(stored);
    const trial = limiter.trial(request, ruleset(), at);
    for (const operation of trial.decision.operations) {
      const { key, limit } = operation;
      const count = before.get(key);
      operation.reserve();
      // A fixed window that is decided with others.
      if (limit.algorithm !== undefined && typeof count === 'number') {
        before.set(key, { previous: 0, current: count, now: at * 1000 });
      }
    }
    const verdict = trial.verdict(before);
    this.#counters.repeated.add(1);
    return { id, verdict, expiresAt: empty?.expiresAt ?? at + ttl };
  }

  /** The present counts of what would be reserved: there is no record of those of an empty reservation. */
  async #present(change: ReservationChange): Promise<Map<string, Stored>> {
    const steps = change.steps.map((step) => ({ ...step, hits: 0, denies: 'never', member: undefined }) as const);
    const read = { ...change, key: this.#keyOf(randomUUID()), after: undefined, steps };
    const result = await changed(this.#store, read);
    return new Map(
      steps.map(({ key, limit }, index) => {
        if (!('steps' in result)) return [key, 0];
        const { count, found } = result.steps[index]!;
        const decider = deciderOf(limit);
        return [key, (decider && foundIn(found, decider)) ?? count];
      }),
    );
  }

  /** @param hitsOf what each of so many descriptors is to have in the end */
  async #end(
    { id, state, caller }: Pick<EndedReservation, 'id' | 'state'> & Pick<DecisionSource, 'caller'>,
    hitsOf: (descriptors: number) => readonly number[],
  ): Promise<EndedReservation> {
    const store = this.#store;
    const { limiter, ruleset } = this.#options;
    if (!ID.test(id)) throw unknown();
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const text = await store.readRecord(this.#keyOf(id));
      const now = this.#options.now();
      const empty = readEmpty(text ?? id);
      if (empty !== undefined) {
        const ending = { id, state, hits: hitsOf(empty.descriptors), now };
        const ended = await this.#endEmpty(text, empty, ending);
        if (ended === undefined) continue;
        return ended;
      }
      if (text === undefined) throw unknown();
      const stored = readRecord(text);
      const { record } = stored;
      const hits = hitsOf(record.request.descriptors.length);
      if (record.state !== 'open') {
        const ended = { id, state: record.state, descriptors: endedDescriptors(stored) };
        return this.#endedBefore(ended, { state, hits });
      }
      const left = Math.min(record.ttl, record.at + record.ttl - now);
      if (left <= 0 && state === 'cancelled') throw expired(record);
      const { steps, ending } = endingOf(id, stored, {
        ...{ hits, now, state },
        resolved: () => limiter.trial(record.request, ruleset(), now).decision.resolutions,
      });
      const ended = { ...record, state, ...ending };
      const result = await store.changeReservation({
        ...{ key: this.#keyOf(id), before: text, after: writeEnded(ended, stored.made) },
        ...{ lifetime: Math.max(0, left) + KEPT, now, steps },
      });
      if (result.outcome !== 'done') continue;
      const { steps: done } = result;
      for (const [index, { added }] of done.entries()) if (added < 0) this.#options.onFree(steps[index]!.key, true);
      this.#counters[state].add(1);
      const descriptors = endedDescriptors({ record: ended, made: stored.made, done });
      const reservation = { id, state, descriptors, wasOpen: left > 0 };
      this.#options.log?.ended(record.request, reservation, { caller, reservation: { id } });
      return reservation;
    }
    throw new ReservationError('reservation_conflict', 'other calls change the reservation at the same time');
  }

  /**
   * Changes no counter, and writes down that it has ended. Resolves with undefined when another call has ended it
   * meanwhile.
   *
   * @param before its record
   */
  async #endEmpty(
    before: string | undefined,
    { limited, expiresAt, ended }: StoredEmpty,
    { id, state, hits, now }: Wanted & { readonly id: string; readonly now: number },
  ): Promise<EndedReservation | undefined> {
    if (ended !== undefined) return this.#endedBefore({ id, ...ended }, { state, hits });
    const left = expiresAt - now;
    if (left <= 0) throw new ReservationError('reservation_conflict', 'the reservation has expired: it held no hits');
    // No process has made such an id, whatever its clock.
    if (left > LONGEST_KNOWN) throw unknown();
    if (hits.some((own, index) => own > 0 && ((limited >> index) & 1) === 1)) {
      throw new ReservationError(
        'reservation_conflict',
        'the reservation holds 0 hits, so that none can be settled: reserve at least 1, or count ' +
          'them with another call',
      );
    }
    const { outcome } = await this.#store.changeReservation({
      ...{ key: this.#keyOf(id), before, after: writeEndedEmpty(before ?? id, state, hits) },
      ...{ lifetime: left + KEPT, now, steps: [] },
    });
    if (outcome !== 'done') return undefined;
    this.#counters[state].add(1);
    return { id, state, descriptors: withoutCounters(hits), wasOpen: true };
  }

  #endedBefore(ended: EndedReservation, wanted: Wanted): EndedReservation {
    const { state, descriptors } = ended;
    if (state !== wanted.state || descriptors.some(({ hits }, index) => hits !== wanted.hits[index])) {
      const how = state === 'settled' ? `settled with ${descriptors.map(({ hits }) => hits).join()} hits` : 'cancelled';
      throw new ReservationError('reservation_conflict', `the reservation was ${how} before`);
    }
    this.#counters.repeated.add(1);
    return ended;
  }

  /** No cache key has colons before its first underscore, unless they are in the name of a domain. */
  #keyOf(id: string): string {
    return `${this.#options.options.cacheKeyPrefix}weir:reservation:${id}`;
  }

  get #store(): ReservationStore {
    const { store } = this.#options;
    if (typeof store === 'string') throw new ReservationError('not_supported', store);
    return store;
  }
}

/** How a call ends a reservation. */
interface Wanted extends Pick<EndedReservation, 'state'> {
  /** The hits of each descriptor. */
  readonly hits: readonly number[];
}

/** Judges a limit by what a reservation has found. One that is denied counts nothing, whichever limit denies it. */
function judge(limited: LimitedDescriptor, { count, found }: StepDone, isReserved: boolean): void {
  const { limit, hits } = limited;
  const { algorithm, requestsPerUnit } = limit;
  if (algorithm === undefined) {
    limited.countAfter = count;
    const left = requestsPerUnit - count;
    if (isReserved) return;
    limited.outcome = {
      ...{ isAllowed: left >= 0, used: count, remaining: Math.max(0, left) },
      ...{ secondsUntilReset: 0, retryAfterSeconds: 0, state: { previous: 0, current: count, now: 0 } },
    };
  } else {
    const isCounted = isReserved || count > requestsPerUnit;
    const inWindow = { previous: 0, current: isCounted ? count - hits : count, now: 0 };
    const state = deciderOf(limit) === undefined ? inWindow : foundIn(found, algorithm)!;
    const outcome = algorithm.decide(state, hits);
    limited.outcome = isReserved || !outcome.isAllowed ? outcome : algorithm.decide(state, 0);
    limited.countAfter = limited.outcome.used;
  }
  if (!isReserved) limited.isLeftOut = true;
}

/** What has neither counters nor a record does not need the store. */
async function changed(store: ReservationStore, change: ReservationChange): Promise<ReservationResult> {
  if (change.after !== undefined || change.steps.length > 0) return store.changeReservation(change);
  return { outcome: change.opens?.isDenied === true ? 'denied' : 'done', steps: [] };
}

/** @throws DecisionError when it is no record */
function readRecord(text: string): StoredRecord {
  const stored = readStored(text);
  if (stored !== undefined) return stored;
  throw new DecisionError('store_failed', 'the key of a reservation holds something else in the store', {
    isKeyError: true,
  });
}

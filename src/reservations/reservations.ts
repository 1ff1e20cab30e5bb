import { randomUUID } from 'node:crypto';
import { endOfWindow } from '../limiter/applied-limit';
import { LARGEST_COUNT } from '../limiter/counter-operation';
import { type Decision, type LimiterOptions, isQuota } from '../limiter/decision';
import { DecisionError } from '../limiter/decision-error';
import type { Limiter } from '../limiter/limiter';
import type { RateLimitRequest } from '../limiter/request';
import { type LimitedDescriptor, type Resolution, limitsOfResolution } from '../limiter/resolution';
import type { Ruleset } from '../rules/ruleset';
import type { Counter } from '../statistics/counter';
import { STORE_ERRORS, type Statistics } from '../statistics/statistics';
import type { DecisionLog, DecisionSource } from '../streams/pending';
import type { Caller } from '../streams/ports/decide';
import {
  type EndedDescriptor,
  type EndedReservation,
  MAX_DESCRIPTORS,
  MAX_OPEN,
  ReservationError,
  type ReservationStep,
  type ReservationStore,
  type Reservations,
  type ReserveCall,
  type Reserved,
  memberOf,
} from '../streams/ports/reservations';
import { type ReservationRecord, type StoredRecord, isSameCall, readStored, writeRecord, writeStored } from './record';

export interface ReservationsOptions {
  /** Decides without a local cache, and without STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT. */
  readonly limiter: Limiter;
  readonly options: LimiterOptions;
  readonly ruleset: () => Ruleset | undefined;
  /** Or why there is none. */
  readonly store: ReservationStore | string;
  readonly statistics: Statistics;
  /** Undefined when decisions are not logged. */
  readonly log?: DecisionLog | undefined;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Called with the key of each counter whose count has fallen, or is below its limit: local caches must not have it as over. */
  readonly onFree: (cacheKey: string, isFallen: boolean) => void;
}

export const MIN_TTL = 1_000;
export const MAX_TTL = 3_600_000;
/** How long the calls of a reservation that has expired or ended are answered as before, in milliseconds. */
export const KEPT = 600_000;
const MAX_RECORD_BYTES = 16 * 1024;
/** Also safe in a path of a URL. */
const ID = /^[A-Za-z0-9._-]{1,128}$/;
/** How often a change is tried that another process interferes with; each time, that process has ended the reservation. */
const ATTEMPTS = 3;

/** See {@link Reservations}. What it does is counted in `ratelimit.reservations.…`. */
export class StoredReservations implements Reservations {
  readonly #options: ReservationsOptions;
  readonly #storeErrors: Counter;
  readonly #inFlight = new Set<Promise<unknown>>();
  #isComplete = false;
  readonly #counters: Readonly<
    Record<'reserved' | 'denied' | 'repeated' | 'settled' | 'cancelled' | 'rejected', Counter>
  >;

  constructor(options: ReservationsOptions) {
    const { statistics } = options;
    function counter(name: string): Counter {
      return statistics.counter(`ratelimit.reservations.${name}`);
    }
    this.#options = options;
    this.#storeErrors = statistics.counter(STORE_ERRORS);
    this.#counters = {
      reserved: counter('reserved'),
      denied: counter('denied'),
      repeated: counter('repeated'),
      settled: counter('settled'),
      cancelled: counter('cancelled'),
      rejected: counter('rejected'),
    };
  }

  reserve(call: ReserveCall): Promise<Reserved> {
    return this.#counted(() => this.#reserve(call));
  }

  settle(id: string, hits: number | readonly number[], caller?: Caller): Promise<EndedReservation> {
    return this.#counted(() =>
      this.#end({ id, state: 'settled', caller }, ({ request: { descriptors } }) => {
        if (typeof hits === 'number') return descriptors.map(() => hits);
        if (hits.length === descriptors.length) return hits;
        throw invalid(`the reservation has ${descriptors.length} descriptors, hits has ${hits.length} numbers`);
      }),
    );
  }

  cancel(id: string, caller?: Caller): Promise<EndedReservation> {
    return this.#counted(() =>
      this.#end({ id, state: 'cancelled', caller }, ({ request: { descriptors } }) => descriptors.map(() => 0)),
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

  async #reserve({ request, ttl, id = randomUUID(), onExpiry, caller }: ReserveCall): Promise<Reserved> {
    const { log } = this.#options;
    checkCall(request, ttl, id);
    const store = this.#store;
    const now = this.#options.now();
    const source = { caller, reservation: { id, ttl, onExpiry } };
    const decision = this.#begin(request, now, source);
    const operations = reservable(decision, this.#options.options);
    const record = recordOf({ request, ttl, onExpiry, at: now }, decision);
    const after = writeRecord(record);
    if (Buffer.byteLength(after) > MAX_RECORD_BYTES) {
      throw new DecisionError(
        'too_much_work',
        `a reservation may have at most ${MAX_RECORD_BYTES} bytes of descriptors and keys`,
      );
    }
    const expiresAt = now + ttl;
    const { isDenied, steps } = this.#stepsOf(decision.resolutions, id, onExpiry === 'cancel');
    const opens = { expiresAt, isDenied };
    const result = await store
      .changeReservation({ key: this.#keyOf(id), before: undefined, after, lifetime: ttl + KEPT, now, opens, steps })
      .catch((error: unknown) => {
        decision.failed();
        if (error instanceof DecisionError) log?.decided(decision, error, source);
        throw error;
      });
    if (result.outcome === 'changed') return this.#again(id, record, readRecord(result.record));
    if (result.outcome !== 'done' && result.outcome !== 'denied') {
      throw new ReservationError('too_many_reservations', `a counter may have at most ${MAX_OPEN} open reservations`);
    }
    const isReserved = result.outcome === 'done';
    for (const [index, operation] of operations.entries()) {
      operation.after = result.counts[index] as number;
      if (!isReserved) deny(operation);
      if (operation.after < operation.applied.requestsPerUnit) this.#options.onFree(operation.key, false);
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
  #again(id: string, call: ReservationRecord, { record, counts }: StoredRecord): Reserved {
    if (!isSameCall(call, record)) {
      throw new ReservationError('reservation_conflict', 'there is a reservation with this id and another content');
    }
    const { limiter, ruleset } = this.#options;
    const before = new Map<string, number>();
    record.counted.forEach(({ key, hits }, index) => {
      if (!before.has(key)) before.set(key, Math.max(0, (counts[index] as number) - hits));
    });
    const verdict = limiter.explain(record.request, ruleset(), record.at).verdict(before);
    this.#counters.repeated.add(1);
    return { id, verdict, expiresAt: record.at + record.ttl };
  }

  /** @param hitsOf what each descriptor of the request is to have in the end */
  async #end(
    { id, state, caller }: Pick<EndedReservation, 'id' | 'state'> & Pick<DecisionSource, 'caller'>,
    hitsOf: (record: ReservationRecord) => readonly number[],
  ): Promise<EndedReservation> {
    const store = this.#store;
    if (!ID.test(id)) throw unknown();
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const text = await store.readRecord(this.#keyOf(id));
      if (text === undefined) throw unknown();
      const { record, counts } = readRecord(text);
      const hits = hitsOf(record);
      if (record.state !== 'open') return this.#endedBefore(id, record, { state, hits });
      const now = this.#options.now();
      const left = record.at + record.ttl - now;
      if (left <= 0) throw expired(record);
      const { steps, ended } = this.#endingOf(id, record, { hits, now, state });
      const after = writeStored({ record: { ...record, state, ended }, counts });
      const result = await store.changeReservation({
        key: this.#keyOf(id),
        before: text,
        after,
        lifetime: left + KEPT,
        now,
        steps,
      });
      if (result.outcome === 'expired') throw expired(record);
      if (result.outcome === 'changed') continue;
      for (const { key, hits: added } of steps) if (added < 0) this.#options.onFree(key, true);
      this.#counters[state].add(1);
      const reservation = { id, state, descriptors: ended };
      this.#options.log?.ended(record.request, reservation, { caller, reservation: { id } });
      return reservation;
    }
    throw new ReservationError('reservation_conflict', 'other calls change the reservation at the same time');
  }

  #endedBefore(
    id: string,
    { state, ended = [] }: ReservationRecord,
    wanted: { readonly state: string; readonly hits: readonly number[] },
  ): EndedReservation {
    const isSame = state === wanted.state && ended.every(({ hits }, index) => hits === wanted.hits[index]);
    if (state === 'open' || !isSame) {
      const how = state === 'settled' ? `settled with ${ended.map(({ hits }) => hits).join()} hits` : 'cancelled';
      throw new ReservationError('reservation_conflict', `the reservation was ${how} before`);
    }
    this.#counters.repeated.add(1);
    return { id, state, descriptors: ended };
  }

  /** What ends a reservation in the store. A window that has ended is not changed: what is above the reservation counts in the present one. */
  #endingOf(
    id: string,
    { request, counted, onExpiry }: ReservationRecord,
    { hits, now, state }: { readonly hits: readonly number[]; readonly now: number; readonly state: string },
  ): { readonly steps: readonly ReservationStep[]; readonly ended: readonly EndedDescriptor[] } {
    const { limiter, ruleset } = this.#options;
    const steps: ReservationStep[] = [];
    const ended = request.descriptors.map((_, index) => ({ reserved: 0, hits: hits[index] as number, added: 0 }));
    let present: readonly Resolution[] | undefined;
    for (const { index, limit, key, hits: reserved, windowSeconds, isInMainStore, end } of counted) {
      const own = ended[index] as (typeof ended)[number];
      own.reserved = reserved;
      const difference = own.hits - reserved;
      const common = { hits: difference, limit: LARGEST_COUNT, denies: 'never' } as const;
      if (now < end * 1000) {
        own.added = difference;
        steps.push({
          ...common,
          key,
          windowSeconds,
          isInMainStore,
          member: memberOf(id, { index, hits: reserved }, onExpiry === 'cancel'),
        });
      } else if (state === 'settled' && difference > 0) {
        present ??= limiter.explain(request, ruleset(), now).descriptors.map(({ resolution }) => resolution);
        const limited = limitsOfResolution(present[index]!)[limit];
        // The rule may have been removed or changed.
        if (limited === undefined || limited.algorithm !== undefined) continue;
        own.added = difference;
        steps.push({
          ...common,
          key: limited.key,
          windowSeconds: limited.windowSeconds,
          isInMainStore: limited.isInMainStore,
          member: undefined,
        });
      }
    }
    return { steps, ended };
  }

  #stepsOf(
    resolutions: readonly Resolution[],
    id: string,
    givesBack: boolean,
  ): { readonly isDenied: boolean; readonly steps: readonly ReservationStep[] } {
    const { options } = this.#options;
    const others = resolutions.filter(({ limited }) => limited === undefined);
    const isQuotaAllowed = others.some((each) => isQuota(each, options) && each.kind !== 'denied');
    const isDenied = others.some((each) => each.kind === 'denied' && !isQuota(each, options)) && !options.shadowMode;
    const steps = resolutions.flatMap((resolution, index) =>
      limitsOfResolution(resolution).map(
        ({ key, callHits: hits, windowSeconds, isInMainStore, applied }): ReservationStep => {
          const isShadow = applied.shadowMode || options.shadowMode;
          const quota = isQuotaAllowed ? 'never' : 'together';
          const denies = isShadow ? 'never' : isQuota(resolution, options) ? quota : 'alone';
          const member = memberOf(id, { index, hits }, givesBack);
          return { key, hits, windowSeconds, isInMainStore, limit: applied.requestsPerUnit, denies, member };
        },
      ),
    );
    return { isDenied, steps };
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

function checkCall({ descriptors }: RateLimitRequest, ttl: number, id: string): void {
  if (!ID.test(id)) throw invalid('id must have 1 to 128 letters, digits, dots, hyphens and underscores');
  if (!(ttl >= MIN_TTL && ttl <= MAX_TTL)) throw invalid('ttl must be from 1 s to 3600 s');
  if (descriptors.length > MAX_DESCRIPTORS) {
    throw invalid(`a reservation may have at most ${MAX_DESCRIPTORS} descriptors, this one has ${descriptors.length}`);
  }
  if (descriptors.some(({ isNegativeHits }) => isNegativeHits))
    throw invalid('hits of a reservation cannot be negative');
}

/** @throws ReservationError for a limit that has no reservations */
function reservable({ resolutions }: Decision, options: LimiterOptions): readonly LimitedDescriptor[] {
  return resolutions.flatMap((resolution, index) => {
    const limits = limitsOfResolution(resolution);
    const name = resolution.rule === undefined ? `descriptor ${index + 1}` : `the rule ${limits[0]?.applied.path}`;
    // A call is over such a quota at one of its limits, but a reservation is denied only by all of them.
    if (limits.length > 1 && isQuota(resolution, options)) {
      throw new ReservationError('not_supported', `${name} is a quota with several limits, which has no reservations`);
    }
    const algorithm = limits.find((limit) => limit.algorithm !== undefined)?.algorithm;
    if (algorithm === undefined) return limits;
    const reason = algorithm.name === 'fixed_window' ? 'all_or_nothing' : `the algorithm ${algorithm.name}`;
    throw new ReservationError(
      'not_supported',
      `the limit of ${name} has ${reason}; only fixed windows without it have reservations`,
    );
  });
}

/** Judges the count of a limit whose reservation counts nothing, because this limit or another one denies it. */
function deny(limited: LimitedDescriptor): void {
  const { after: used, applied } = limited;
  const left = applied.requestsPerUnit - used;
  limited.hits = 0;
  limited.outcome = {
    ...{ isAllowed: left >= 0, used, remaining: Math.max(0, left) },
    ...{ secondsUntilReset: 0, secondsClosed: 0, state: { previous: 0, current: used, now: 0 } },
  };
}

function recordOf(
  call: Pick<ReservationRecord, 'request' | 'ttl' | 'onExpiry' | 'at'>,
  { resolutions }: Decision,
): ReservationRecord {
  const nowSeconds = Math.floor(call.at / 1000);
  const counted = resolutions.flatMap((resolution, index) =>
    limitsOfResolution(resolution).map(({ key, callHits: hits, windowSeconds, isInMainStore, applied }, limit) => {
      return { index, limit, key, hits, windowSeconds, isInMainStore, end: endOfWindow(applied, nowSeconds) };
    }),
  );
  return { ...call, counted, state: 'open' };
}

/** @throws DecisionError when it is no record */
function readRecord(text: string | undefined): StoredRecord {
  const stored = readStored(text ?? '');
  if (stored !== undefined) return stored;
  throw new DecisionError('store_failed', 'the key of a reservation holds something else in the store', {
    isOfKey: true,
  });
}

function expired({ onExpiry }: ReservationRecord): ReservationError {
  const what = onExpiry === 'settle' ? 'its hits stay counted' : 'its hits were given back';
  return new ReservationError('reservation_conflict', `the reservation has expired: ${what}`);
}

function unknown(): ReservationError {
  return new ReservationError('unknown_reservation', 'there is no reservation with this id, or not any more');
}

function invalid(message: string): DecisionError {
  return new DecisionError('invalid_request', message);
}

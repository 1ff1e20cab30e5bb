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
  type EndedReservation,
  KEPT,
  MAX_DESCRIPTORS,
  MAX_OPEN,
  ReservationError,
  type ReservationChange,
  type ReservationResult,
  type ReservationStep,
  type ReservationStore,
  type Reservations,
  type ReserveCall,
  type Reserved,
  memberOf,
} from '../streams/ports/reservations';
import {
  EMPTY_PREFIX,
  type EmptyReservation,
  type ReservationRecord,
  type StoredRecord,
  digestOf,
  endedDescriptors,
  isSameCall,
  readEmpty,
  readStored,
  writeEmpty,
  writeEnded,
  writeRecord,
} from './record';

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
    const { isDenied, steps } = this.#stepsOf(decision.resolutions, id, onExpiry === 'cancel');
    const change = {
      ...{ key: this.#keyOf(id), before: undefined, after: textOf(record, empty, call.id), lifetime: ttl + KEPT, now },
      ...{ opens: { expiresAt, isDenied, domain: request.domain }, steps },
    };
    const result = await changed(store, change).catch((error: unknown) => {
      decision.failed();
      if (error instanceof DecisionError) log?.decided(decision, error, source);
      throw error;
    });
    if (result.outcome === 'changed') return this.#again(id, record, { text: result.record, change });
    if (result.outcome !== 'done' && result.outcome !== 'denied') throw tooMany(result, request.domain);
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
    const verdict = limiter.explain(request, ruleset(), at).verdict(before);
    this.#counters.repeated.add(1);
    return { id, verdict, expiresAt: empty?.expiresAt ?? at + ttl };
  }

  /** The present counts of what would be reserved: there is no record of those of an empty reservation. */
  async #present(change: ReservationChange): Promise<ReadonlyMap<string, number>> {
    const steps = change.steps.map((step) => ({ ...step, hits: 0, denies: 'never', member: undefined }) as const);
    const read = { ...change, key: this.#keyOf(randomUUID()), after: undefined, steps };
    const result = await changed(this.#store, read);
    return new Map(steps.map(({ key }, index) => [key, 'counts' in result ? result.counts[index]! : 0]));
  }

  /** @param hitsOf what each of so many descriptors is to have in the end */
  async #end(
    { id, state, caller }: Pick<EndedReservation, 'id' | 'state'> & Pick<DecisionSource, 'caller'>,
    hitsOf: (descriptors: number) => readonly number[],
  ): Promise<EndedReservation> {
    const store = this.#store;
    if (!ID.test(id)) throw unknown();
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const text = readEmpty(id) === undefined ? await store.readRecord(this.#keyOf(id)) : id;
      if (text === undefined) throw unknown();
      const now = this.#options.now();
      const empty = readEmpty(text);
      if (empty !== undefined) return this.#endEmpty({ id, state }, empty, hitsOf(empty.descriptors));
      const stored = readRecord(text);
      const { record } = stored;
      const hits = hitsOf(record.request.descriptors.length);
      if (record.state !== 'open') return this.#endedBefore(id, stored, { state, hits });
      const left = record.at + record.ttl - now;
      if (left <= 0) throw expired(record);
      const { steps, ending } = this.#endingOf(id, stored, { hits, now, state });
      const ended = { ...record, state, ...ending };
      const result = await store.changeReservation({
        ...{
          key: this.#keyOf(id),
          before: text,
          after: writeEnded(ended, stored.made),
          lifetime: left + KEPT,
          now,
          steps,
        },
      });
      if (result.outcome === 'expired') throw expired(record);
      if (result.outcome !== 'done') continue;
      const done = result.added.map((added, index) => ({ count: result.counts[index]!, added }));
      for (const [index, { added }] of done.entries()) if (added < 0) this.#options.onFree(steps[index]!.key, true);
      this.#counters[state].add(1);
      const reservation = { id, state, descriptors: endedDescriptors({ record: ended, made: stored.made, done }) };
      this.#options.log?.ended(record.request, reservation, { caller, reservation: { id } });
      return reservation;
    }
    throw new ReservationError('reservation_conflict', 'other calls change the reservation at the same time');
  }

  /** Changes nothing, neither a counter nor a record. */
  #endEmpty(
    reservation: Pick<EndedReservation, 'id' | 'state'>,
    { limited, expiresAt }: EmptyReservation,
    hits: readonly number[],
  ): EndedReservation {
    if (this.#options.now() >= expiresAt) {
      throw new ReservationError('reservation_conflict', 'the reservation has expired: it held no hits');
    }
    if (hits.some((own, index) => own > 0 && ((limited >> index) & 1) === 1)) {
      throw new ReservationError(
        'reservation_conflict',
        'the reservation holds 0 hits, so that none can be settled: reserve at least 1, or count them with another call',
      );
    }
    this.#counters[reservation.state].add(1);
    return { ...reservation, descriptors: hits.map((own) => ({ reserved: 0, hits: own, added: 0 })) };
  }

  #endedBefore(
    id: string,
    stored: StoredRecord,
    wanted: { readonly state: string; readonly hits: readonly number[] },
  ): EndedReservation {
    const { state } = stored.record;
    const ended = endedDescriptors(stored);
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
    { record: { request, counted, onExpiry }, made }: StoredRecord,
    { hits, now, state }: { readonly hits: readonly number[]; readonly now: number; readonly state: string },
  ): {
    readonly steps: readonly ReservationStep[];
    readonly ending: Pick<ReservationRecord, 'ended' | 'steps'>;
  } {
    const { limiter, ruleset } = this.#options;
    const steps: ReservationStep[] = [];
    const indices: number[] = [];
    const ended = request.descriptors.map((_, index) => ({ reserved: 0, hits: hits[index] as number }));
    let present: readonly Resolution[] | undefined;
    for (const [
      position,
      { index, limit, key, hits: reserved, windowSeconds, isInMainStore, end },
    ] of counted.entries()) {
      const own = ended[index] as (typeof ended)[number];
      own.reserved = reserved;
      const held = made[position]!.added;
      const common = { hits: own.hits - held, limit: LARGEST_COUNT, denies: 'never' } as const;
      if (now < end * 1000) {
        const entered = reserved === 0 ? {} : { held };
        const member = reserved === 0 ? undefined : memberOf(id, index, onExpiry === 'cancel');
        steps.push({ ...common, key, windowSeconds, isInMainStore, member, ...entered });
        indices.push(index);
      } else if (state === 'settled' && common.hits > 0) {
        present ??= limiter.explain(request, ruleset(), now).descriptors.map(({ resolution }) => resolution);
        const limited = limitsOfResolution(present[index]!)[limit];
        // The rule may have been removed or changed.
        if (limited === undefined || limited.algorithm !== undefined) continue;
        steps.push({
          ...common,
          key: limited.key,
          windowSeconds: limited.windowSeconds,
          isInMainStore: limited.isInMainStore,
          member: undefined,
        });
        indices.push(index);
      }
    }
    return { steps, ending: { ended, steps: indices } };
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
          const member = hits === 0 ? undefined : memberOf(id, index, givesBack);
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

function checkCall({ request: { descriptors }, ttl, id }: ReserveCall): void {
  if (id !== undefined && !ID.test(id)) {
    throw invalid('id must have 1 to 128 letters, digits, dots, hyphens and underscores');
  }
  if (id?.startsWith(EMPTY_PREFIX) === true) throw invalid(`id must not begin with ${EMPTY_PREFIX}`);
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

/** Undefined: a descriptor has hits and a limit. */
function emptyOf({ resolutions }: Decision, expiresAt: number): EmptyReservation | undefined {
  let limited = 0;
  for (const [index, resolution] of resolutions.entries()) {
    const limits = limitsOfResolution(resolution);
    if (limits.some(({ callHits }) => callHits > 0)) return undefined;
    if (limits.length > 0) limited += 2 ** index;
  }
  return { descriptors: resolutions.length, limited, expiresAt };
}

/**
 * What the store keeps of a reservation that is made.
 *
 * @throws DecisionError when it is too long
 */
function textOf(
  record: ReservationRecord,
  empty: EmptyReservation | undefined,
  id: string | undefined,
): string | undefined {
  if (empty !== undefined) return id === undefined ? undefined : writeEmpty(empty, digestOf(record));
  const text = writeRecord(record);
  if (Buffer.byteLength(text) <= MAX_RECORD_BYTES) return text;
  throw new DecisionError(
    'too_much_work',
    `a reservation may have at most ${MAX_RECORD_BYTES} bytes of descriptors and keys`,
  );
}

/** What has neither counters nor a record does not need the store. */
async function changed(store: ReservationStore, change: ReservationChange): Promise<ReservationResult> {
  if (change.after !== undefined || change.steps.length > 0) return store.changeReservation(change);
  return { outcome: change.opens?.isDenied === true ? 'denied' : 'done', counts: [], added: [] };
}

function countsBefore({ record, made }: StoredRecord): ReadonlyMap<string, number> {
  const before = new Map<string, number>();
  record.counted.forEach(({ key }, index) => {
    const { count, added } = made[index]!;
    if (!before.has(key)) before.set(key, count - added);
  });
  return before;
}

function tooMany(result: ReservationResult, domain: string): ReservationError {
  const full = {
    counter: `a counter may have at most ${MAX_OPEN} open reservations`,
    domain: `the open reservations of the domain ${domain} take half of the memory for all`,
    store: 'the open reservations take all of the memory for them',
  };
  return new ReservationError('too_many_reservations', full[result.outcome === 'full' ? result.of : 'store']);
}

/** @throws DecisionError when it is no record */
function readRecord(text: string): StoredRecord {
  const stored = readStored(text);
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

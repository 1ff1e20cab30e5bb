import type { Denies } from '../counting/group';
import type { Limit } from '../counting/limit';
import type { Algorithm, AlgorithmLimit } from '../counting/algorithms/algorithm';
import { algorithmOf } from '../counting/limit';
import { type CountedLimit, LARGEST_COUNT, type Stored } from '../counting/operation';
import { deciderOf, foundIn, holdText } from '../counting/reserved';
import { type Decision, isQuota } from '../limiter/decision';
import type { LimiterOptions } from '../limiter/options';
import { DecisionError } from '../counting/decision-error';
import { type Resolution, limitsOfResolution } from '../limiter/resolution';
import type { OnExpiry, ReservationStep } from '../streams/ports/reservations';
import {
  type EmptyReservation,
  type ReservationRecord,
  type StoredRecord,
  digestOf,
  writeEmpty,
  writeRecord,
  windowIn,
} from './record';

const MAX_RECORD_BYTES = 16 * 1024;

/** What a reservation is to become. */
export interface Ending {
  /** The hits of each descriptor. */
  readonly hits: readonly number[];
  /** Unix milliseconds. */
  readonly now: number;
  readonly state: string;
  /** What its descriptors resolve to by the present rules. */
  readonly resolved: () => readonly Resolution[];
}

/** What makes a reservation in the store, and whether a limit that does not count denies it. */
export function stepsOf(
  resolutions: readonly Resolution[],
  { id, onExpiry }: { readonly id: string; readonly onExpiry: OnExpiry },
  options: LimiterOptions,
): { readonly isDenied: boolean; readonly steps: readonly ReservationStep[] } {
  const others = resolutions.filter(({ limited }) => limited === undefined);
  const isQuotaAllowed = others.some((each) => isQuota(each, options) && each.kind !== 'denied');
  const isDenied = others.some((each) => each.kind === 'denied' && !isQuota(each, options)) && !options.shadowMode;
  const steps = resolutions.flatMap((resolution, index) =>
    limitsOfResolution(resolution).map(({ key, callHits: hits, limit }): ReservationStep => {
      const isShadow = limit.shadowMode || options.shadowMode;
      const quota = isQuotaAllowed ? 'never' : 'together';
      const denies = isShadow ? 'never' : isQuota(resolution, options) ? quota : 'alone';
      const own = hits === 0 ? undefined : memberOf({ id, index, onExpiry, isPlace: isConcurrent(limit) });
      return { key, hits, limit: plainLimit(limit), denies, member: own };
    }),
  );
  return { isDenied, steps };
}

function isConcurrent({ algorithm }: { readonly algorithm?: Pick<AlgorithmLimit, 'name'> | undefined }): boolean {
  return algorithm?.name === 'max_concurrent';
}

interface Named {
  readonly id: string;
  readonly index: number;
  readonly onExpiry: OnExpiry;
  readonly isPlace: boolean;
}

/** See {@link ReservationStep.member}. */
function memberOf({ id, index, onExpiry, isPlace }: Named): string {
  return `${onExpiry === 'settle' ? 's' : isPlace ? 'f' : 'c'}:${index}:${id}`;
}

/**
 * What ends a reservation in the store. A window that has ended is not changed: what is above the reservation counts in
 * the present one; all of it, if the reservation was given back before.
 */
export function endingOf(
  id: string,
  { record: { request, counted, onExpiry, at, ttl }, made }: StoredRecord,
  { hits, now, state, resolved }: Ending,
): {
  readonly steps: readonly ReservationStep[];
  readonly ending: Pick<ReservationRecord, 'ended' | 'steps'>;
} {
  const steps: ReservationStep[] = [];
  const indices: number[] = [];
  const ended = request.descriptors.map((_, index) => ({ reserved: 0, hits: hits[index] as number }));
  let present: readonly Resolution[] | undefined;
  for (const [position, counter] of counted.entries()) {
    const { index, limit, key, hits: reserved, isInMainStore, algorithm, ...window } = counter;
    const own = ended[index] as (typeof ended)[number];
    const isPlace = isConcurrent(counter);
    // The hits are shown of a descriptor with other limits, too.
    if (!isPlace || own.reserved === 0) own.reserved = reserved;
    const { added: held, found } = made[position]!;
    const common = { hits: isPlace ? 0 : own.hits - held, denies: 'never' as Denies };
    if (algorithm !== undefined || now < window.end * 1000) {
      const entered = reserved === 0 ? {} : { held, hold: holdText(found) };
      const member = reserved === 0 ? undefined : memberOf({ id, index, onExpiry, isPlace });
      const unlimited = {
        ...{ requestsPerUnit: LARGEST_COUNT, ...windowIn(window), isOneOfSeveral: isInMainStore },
        algorithm: algorithm && algorithmOf(algorithm),
      };
      const step = { ...common, key, limit: unlimited, member, ...entered };
      steps.splice(isPlace ? 0 : steps.length, 0, step);
      indices.splice(isPlace ? 0 : indices.length, 0, index);
      continue;
    }
    const isGivenBack = onExpiry === 'cancel' && at + ttl < window.end * 1000;
    const rest = { ...common, hits: own.hits - (isGivenBack ? 0 : held) };
    if (state === 'settled' && rest.hits > 0) {
      present ??= resolved();
      const resolution = present[index]!;
      const limited = limitsOfResolution(resolution).find((each) => indexOf(resolution, each.limit) === limit);
      // The rule may have been removed or changed, or the limit does not apply at this hour.
      if (limited === undefined || deciderOf(limited.limit) !== undefined) continue;
      const unlimited = { ...plainLimit(limited.limit), requestsPerUnit: LARGEST_COUNT };
      steps.push({ ...rest, key: limited.key, limit: unlimited, member: undefined });
      indices.push(index);
    }
  }
  return { steps, ending: { ended, steps: indices } };
}

export function recordOf(
  call: Pick<ReservationRecord, 'request' | 'ttl' | 'onExpiry' | 'at'>,
  { resolutions }: Decision,
): ReservationRecord {
  const nowSeconds = Math.floor(call.at / 1000);
  const counted = resolutions.flatMap((resolution, index) =>
    limitsOfResolution(resolution).map(({ key, callHits: hits, limit: applied }) => {
      const limit = indexOf(resolution, applied);
      const { isOneOfSeveral: isInMainStore } = applied;
      const end = applied.endOfWindow(nowSeconds);
      const windowSeconds = applied.endsAt ?? applied.lengthSeconds;
      const algorithm = limitOf(deciderOf(applied));
      return { index, limit, key, hits, windowSeconds, isInMainStore, end, algorithm };
    }),
  );
  return { ...call, counted, state: 'open' };
}

/** Which limit of its rule a limit is, whichever apply now; limits that alternate are one. */
function indexOf({ rule }: Resolution, { unit, unitMultiplier }: Limit): number {
  return rule?.limits.findIndex((each) => each.unit === unit.name && each.unitMultiplier === unitMultiplier) ?? 0;
}

/** Undefined: a descriptor has hits and a limit. */
export function emptyOf({ resolutions }: Decision, expiresAt: number): EmptyReservation | undefined {
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
export function textOf(
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

export function countsBefore({ record, made }: StoredRecord): Map<string, Stored> {
  const before = new Map<string, Stored>();
  record.counted.forEach(({ key, algorithm }, index) => {
    const { count, added, found } = made[index]!;
    const state = algorithm && foundIn(found, algorithmOf(algorithm));
    if (!before.has(key)) before.set(key, state ?? count - added);
  });
  return before;
}

/** As data. */
function limitOf(algorithm: Algorithm | undefined): AlgorithmLimit | undefined {
  if (algorithm === undefined) return undefined;
  const { name, requestsPerUnit, lengthSeconds, burst, postpaid } = algorithm;
  return { name, requestsPerUnit, lengthSeconds, burst, postpaid };
}

/** What counting needs of a limit. */
function plainLimit(limit: CountedLimit): CountedLimit {
  const { requestsPerUnit, lengthSeconds, endsAt, isOneOfSeveral } = limit;
  return { requestsPerUnit, lengthSeconds, endsAt, isOneOfSeveral, algorithm: deciderOf(limit) };
}

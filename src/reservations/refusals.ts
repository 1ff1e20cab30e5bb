import { type Decision, isQuota } from '../limiter/decision';
import type { LimiterOptions } from '../limiter/options';
import { DecisionError } from '../counting/decision-error';
import { type LimitedDescriptor, limitsOfResolution } from '../limiter/resolution';
import {
  MAX_RESERVED_DESCRIPTORS,
  MAX_OPEN,
  MAX_TTL,
  MIN_TTL,
  ReservationError,
  type ReservationResult,
  type ReserveCall,
} from '../streams/ports/reservations';
import { EMPTY_PREFIX, type ReservationRecord } from './record';

/**
 * An id that is safe in a path of a URL, too, where one or two dots mean another path. `due` is the key of a set of the
 * store.
 */
export const ID = /^(?!(?:\.{1,2}|due)$)[A-Za-z0-9._-]{1,128}$/;

/** @throws DecisionError for a call that is malformed */
export function checkCall({ request: { descriptors }, ttl, id }: ReserveCall): void {
  if (id !== undefined && !ID.test(id)) {
    throw invalid('id must have 1 to 128 letters, digits, dots, hyphens and underscores, and not be ., .. or due');
  }
  if (id?.startsWith(EMPTY_PREFIX) === true) throw invalid(`id must not begin with ${EMPTY_PREFIX}`);
  if (!(ttl >= MIN_TTL && ttl <= MAX_TTL)) throw invalid('ttl must be from 1 s to 3600 s');
  if (descriptors.length > MAX_RESERVED_DESCRIPTORS) {
    throw invalid(
      `a reservation may have at most ${MAX_RESERVED_DESCRIPTORS} descriptors, this one has ${descriptors.length}`,
    );
  }
  if (descriptors.some(({ isNegativeHits }) => isNegativeHits))
    throw invalid('hits of a reservation cannot be negative');
}

/** @throws ReservationError for a limit that has no reservations */
export function reservable({ resolutions }: Decision, options: LimiterOptions): readonly LimitedDescriptor[] {
  return resolutions.flatMap((resolution, index) => {
    const limits = limitsOfResolution(resolution);
    const name = resolution.rule === undefined ? `descriptor ${index + 1}` : `the rule ${limits[0]?.limit.path}`;
    // A call is over such a quota at one of its limits, but a reservation is denied only by all of them.
    if (limits.length > 1 && isQuota(resolution, options)) {
      throw new ReservationError('not_supported', `${name} is a quota with several limits, which has no reservations`);
    }
    if (limits.some(({ blockKey }) => blockKey !== undefined))
      throw new ReservationError('not_supported', `${name} has block_for, with which there are no reservations`);
    for (const limited of limits) limited.reserve();
    return limits;
  });
}

export function tooMany(result: ReservationResult, domain: string): ReservationError {
  const full = {
    counter: `a counter may have at most ${MAX_OPEN} open reservations`,
    domain: `the open reservations of the domain ${domain} take half of the memory for all`,
    store: 'the open reservations take all of the memory for them',
  };
  return new ReservationError('too_many_reservations', full[result.outcome === 'full' ? result.of : 'store']);
}

export function expired({ onExpiry }: ReservationRecord): ReservationError {
  const what = onExpiry === 'settle' ? 'its hits stay counted' : 'its hits were given back';
  return new ReservationError('reservation_conflict', `the reservation has expired: ${what}`);
}

export function unknown(): ReservationError {
  return new ReservationError('unknown_reservation', 'there is no reservation with this id, or not any more');
}

export function invalid(message: string): DecisionError {
  return new DecisionError('invalid_request', message);
}

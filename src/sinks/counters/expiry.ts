import { type LimitWindow, windowEnd } from '../../counting/windows';

/**
 * The random part of a new key's time to live, in seconds, so that keys do not all expire together.
 *
 * @param jitter its exclusive upper bound: EXPIRATION_JITTER_MAX_SECONDS
 */
export function randomPart(jitter: number): number {
  return Math.floor(Math.random() * jitter);
}

/**
 * For how many seconds a key has to exist: up to the end of the present window. Limits of different units can have one
 * key, whose expiry is at first that of the unit that counted first.
 */
export function secondsLeft(window: LimitWindow): number {
  const now = Math.floor(Date.now() / 1000);
  // A window of the calendar may have ended since the call; a new key needs an expiry even so.
  return Math.max(1, windowEnd(window, now) - now);
}

/** For how many seconds a key is kept that is created now, without the random part. */
export function lifetimeOf(window: LimitWindow): number {
  // Until the end of a window of the calendar, and a second more, so that it is not found to be too short.
  return window.endsAt === undefined ? window.lengthSeconds : secondsLeft(window) + 1;
}

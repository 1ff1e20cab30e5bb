/** Milliseconds to wait before the next attempt; `attempt` counts consecutive failures from 1. */
export type RetryDelay = (attempt: number) => number;

/**
 * Exponential backoff with jitter: doubles from `initial` up to `max` milliseconds and draws evenly from the upper half of
 * that, so that processes do not retry in lockstep.
 */
export function exponentialBackoff(initial: number, max: number): RetryDelay {
  return (attempt) => {
    const wait = Math.min(max, initial * 2 ** (attempt - 1));
    return wait / 2 + (wait / 2) * Math.random();
  };
}

/** For connections that are lost after start-up. */
export const RECONNECT: RetryDelay = exponentialBackoff(50, 1000);

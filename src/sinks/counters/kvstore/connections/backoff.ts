/** How long to wait before the next try, in milliseconds; `attempt` counts failures in a row from 1. */
export type RetryDelay = (attempt: number) => number;

/** Doubles from the initial wait up to the largest, and draws evenly from the upper half, so that processes do not march in step. */
export function exponentialBackoff(initial: number, max: number, random: () => number = Math.random): RetryDelay {
  return (attempt) => {
    const wait = Math.min(max, initial * 2 ** (attempt - 1));
    return wait / 2 + (wait / 2) * random();
  };
}

/** For a connection that was lost while the service runs. */
export const RECONNECT: RetryDelay = exponentialBackoff(50, 1000);

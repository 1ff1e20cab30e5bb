/** Above this, memcached takes an expiry for a date: 30 days in seconds. */
const LONGEST_RELATIVE = 2_592_000;

/**
 * A time to live in the form of memcached: seconds, or above 30 days the date in Unix seconds. One second is added, because the
 * server's clock ticks in whole seconds: without it a counter of one second may live only for milliseconds.
 *
 * @param seconds at least 1
 * @param now Unix time in milliseconds
 */
export function memcachedExpiry(seconds: number, now: number): number {
  const expiry = seconds + 1;
  return expiry > LONGEST_RELATIVE ? Math.floor(now / 1000) + expiry : expiry;
}

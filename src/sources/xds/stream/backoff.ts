/** The waits before a stream is opened again, in milliseconds. */
export interface BackoffOptions {
  /** The wait after a stream that worked (CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL). */
  readonly retryInterval: number;
  /** The wait after the first of consecutive failures (XDS_CLIENT_BACKOFF_INITIAL_INTERVAL). */
  readonly initialInterval: number;
  /** The longest wait (XDS_CLIENT_BACKOFF_MAX_INTERVAL). */
  readonly maxInterval: number;
  /** XDS_CLIENT_BACKOFF_RANDOM_FACTOR: each wait is the previous one times (1 + this), or times this when it is above 1. */
  readonly randomFactor: number;
  /** XDS_CLIENT_BACKOFF_JITTER: each wait is uniformly random between the initial one and the calculated one. */
  readonly jitter: boolean;
}

/**
 * The wait before the next attempt, in milliseconds.
 *
 * @param failures consecutive streams that failed; 0 after one that worked
 * @param random returns a number from 0 to 1
 */
export function waitAfter(failures: number, backoff: BackoffOptions, random: () => number): number {
  if (failures === 0) return backoff.retryInterval;
  const { initialInterval, maxInterval, randomFactor, jitter } = backoff;
  const growth = randomFactor > 1 ? randomFactor : 1 + randomFactor;
  const initial = Math.min(initialInterval, maxInterval);
  const wait = Math.min(initial * growth ** (failures - 1), maxInterval);
  return jitter ? initial + random() * (wait - initial) : wait;
}

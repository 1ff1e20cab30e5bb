/** How long to wait before a stream is opened again. Times are in milliseconds. */
export interface BackoffOptions {
  /** After a stream that worked (CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL). */
  readonly retryInterval: number;
  /** After the first failure in a row (XDS_CLIENT_BACKOFF_INITIAL_INTERVAL). */
  readonly initialInterval: number;
  /** The longest wait (XDS_CLIENT_BACKOFF_MAX_INTERVAL). */
  readonly maxInterval: number;
  /** XDS_CLIENT_BACKOFF_RANDOM_FACTOR: the wait grows by 1 + this each time, by this itself where it is above 1. */
  readonly randomFactor: number;
  /** XDS_CLIENT_BACKOFF_JITTER: each wait is drawn evenly between the initial one and the one worked out. */
  readonly jitter: boolean;
}

/**
 * The wait before the next attempt, in milliseconds.
 * @param failures streams in a row that failed; 0 after one that worked
 * @param random from 0 to 1
 */
export function waitAfter(failures: number, backoff: BackoffOptions, random: () => number): number {
  if (failures === 0) return backoff.retryInterval;
  const { initialInterval, maxInterval, randomFactor, jitter } = backoff;
  const growth = randomFactor > 1 ? randomFactor : 1 + randomFactor;
  const initial = Math.min(initialInterval, maxInterval);
  const wait = Math.min(initial * growth ** (failures - 1), maxInterval);
  return jitter ? initial + random() * (wait - initial) : wait;
}

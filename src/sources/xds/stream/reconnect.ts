import { EMPTY, type MonoTypeOperatorFunction, type SchedulerLike, catchError, defer, repeat, tap, timer } from 'rxjs';
import { type Backoff, backoff } from '../../../streams/backoff';

/** The waits before a stream is opened again, in milliseconds. */
export interface ReconnectWaits {
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

/** How an attempt ended, and when the next one starts. */
export interface AttemptEnd {
  /** Undefined when it completed. */
  readonly error: unknown;
  /** Consecutive attempts that failed, including this one; 0 when it worked. */
  readonly failures: number;
  /** Milliseconds until the next attempt. */
  readonly wait: number;
}

export interface ReconnectOptions<T> {
  readonly waits: ReconnectWaits;
  /** Whether this value shows that the attempt works. */
  readonly works: (value: T) => boolean;
  /** Whether an attempt that ends with this error counts as failed even though it worked before. */
  readonly fails: (error: unknown) => boolean;
  readonly onEnd: (end: AttemptEnd) => void;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
  readonly scheduler: SchedulerLike;
}

/**
 * Subscribes to the source again whenever it completes or fails: after `retryInterval` when it worked, otherwise after a wait
 * that grows with each consecutive failure. Neither completes nor fails. Unsubscribing ends the attempt or the wait.
 */
export function reconnect<T>(options: ReconnectOptions<T>): MonoTypeOperatorFunction<T> {
  const { waits, works, fails, onEnd, random, scheduler } = options;
  const waitAfter = failureBackoff(waits, random);
  return (attempt$) =>
    defer(() => {
      let failures = 0;
      let worked = false;
      let error: unknown;
      return defer(() => {
        worked = false;
        error = undefined;
        return attempt$;
      }).pipe(
        tap((value) => {
          worked ||= works(value);
        }),
        catchError((thrown: unknown) => {
          error = thrown;
          if (fails(thrown)) worked = false;
          return EMPTY;
        }),
        repeat({
          delay: () => {
            failures = worked ? 0 : failures + 1;
            const wait = failures === 0 ? waits.retryInterval : waitAfter(failures);
            onEnd({ error, failures, wait });
            return timer(wait, scheduler);
          },
        }),
      );
    });
}

function failureBackoff(waits: ReconnectWaits, random: () => number): Backoff {
  const { initialInterval, maxInterval: max, randomFactor, jitter } = waits;
  const initial = Math.min(initialInterval, max);
  const factor = randomFactor > 1 ? randomFactor : 1 + randomFactor;
  return backoff({ initial, max, factor, ...(jitter && { drawn: (wait) => [initial, wait] }), random });
}

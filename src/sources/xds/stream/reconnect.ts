import { EMPTY, type MonoTypeOperatorFunction, type SchedulerLike, catchError, defer, repeat, tap, timer } from 'rxjs';
import { type BackoffOptions, waitAfter } from './backoff';

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
  readonly backoff: BackoffOptions;
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
  const { backoff, works, fails, onEnd, random, scheduler } = options;
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
            const wait = waitAfter(failures, backoff, random);
            onEnd({ error, failures, wait });
            return timer(wait, scheduler);
          },
        }),
      );
    });
}

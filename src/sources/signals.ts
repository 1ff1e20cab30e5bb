import { type Observable, ReplaySubject, defer, fromEvent, map, merge, share } from 'rxjs';
import { TERMINATION_SIGNALS, takeRecordedSignals } from './recorded-signals';

/**
 * Emits the name of each signal that requests termination, first those that were recorded since the start of the program. Shared: a late
 * subscriber receives the last two as well, so that none is lost while the service is being put together. Never completes. While there
 * is a subscriber, these signals do not terminate the process; after unsubscribing they do so again, unless they are recorded.
 */
export function terminationSignals(): Observable<NodeJS.Signals> {
  // The first one starts the drain, and the second one aborts it.
  return merge(signals(TERMINATION_SIGNALS), defer(takeRecordedSignals)).pipe(
    share({ connector: () => new ReplaySubject(2) }),
  );
}

/** Emits the name of each signal of these names. Never completes. */
export function signals(names: readonly NodeJS.Signals[]): Observable<NodeJS.Signals> {
  return merge(...names.map((signal) => fromEvent(process, signal).pipe(map(() => signal))));
}

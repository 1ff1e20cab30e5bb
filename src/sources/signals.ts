import { type Observable, ReplaySubject, concat, defer, filter, fromEvent, map, merge, of, share } from 'rxjs';
import { type ReceivedSignal, TERMINATION_SIGNALS, isAnother, takeRecordedSignal } from './recorded-signals';

/**
 * Emits the name of the first signal that requests termination, also one that was recorded since the start of the
 * program, and of each that is another one. Shared: a late subscriber receives the last two as well, so that none is
 * lost while the service is being put together. Never completes. While there is a subscriber, these signals do not
 * terminate the process; after unsubscribing they do so again, unless they are recorded.
 */
export function terminationSignals(): Observable<NodeJS.Signals> {
  return defer(() => {
    let first: ReceivedSignal | undefined = takeRecordedSignal();
    const further$ = signals(TERMINATION_SIGNALS).pipe(
      filter((signal) => {
        if (first !== undefined) return isAnother(first);
        first = { signal, at: performance.now() };
        return true;
      }),
    );
    return first === undefined ? further$ : concat(of(first.signal), further$);
  }).pipe(
    // The first one starts the drain, and the second one aborts it.
    share({ connector: () => new ReplaySubject(2) }),
  );
}

/** Emits the name of each signal of these names. Never completes. */
export function signals(names: readonly NodeJS.Signals[]): Observable<NodeJS.Signals> {
  return merge(...names.map((signal) => fromEvent(process, signal).pipe(map(() => signal))));
}

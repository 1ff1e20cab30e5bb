import { type Observable, ReplaySubject, fromEvent, map, merge, share } from 'rxjs';

/**
 * The signals that request termination. SIGHUP is treated like SIGTERM: there is no configuration that it could reload. SIGPWR is
 * how LXC stops a container.
 */
const TERMINATION: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGPWR'];

/**
 * Emits the name of each signal that requests termination, shared: a late subscriber receives the last two as well, so that none is
 * lost while the service is being put together. Never completes. While there is a subscriber, these signals do not terminate the process;
 * after unsubscribing they do so again.
 */
export function terminationSignals(): Observable<NodeJS.Signals> {
  // The first one starts the drain, and the second one aborts it.
  return signals(TERMINATION).pipe(share({ connector: () => new ReplaySubject(2) }));
}

/** Emits the name of each signal of these names. Never completes. */
export function signals(names: readonly NodeJS.Signals[]): Observable<NodeJS.Signals> {
  return merge(...names.map((signal) => fromEvent(process, signal).pipe(map(() => signal))));
}

import { type Observable, fromEvent, map, merge } from 'rxjs';

/**
 * The signals that request termination. SIGHUP is treated like SIGTERM: there is no configuration that it could reload. SIGPWR is
 * how LXC stops a container.
 */
const TERMINATION: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGPWR'];

/**
 * Emits the name of each signal that requests termination. Never completes. While there is a subscriber, these signals do not
 * terminate the process; after unsubscribing they do so again.
 */
export function terminationSignals(): Observable<NodeJS.Signals> {
  return signals(TERMINATION);
}

/** Emits the name of each signal of these names. Never completes. */
export function signals(names: readonly NodeJS.Signals[]): Observable<NodeJS.Signals> {
  return merge(...names.map((signal) => fromEvent(process, signal).pipe(map(() => signal))));
}

import { type Observable, fromEvent, map, merge } from 'rxjs';

/** The signals that request termination. SIGHUP is treated like SIGTERM: there is no configuration that it could reload. */
const TERMINATION: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/**
 * Emits the name of each signal that requests termination. Never completes. While there is a subscriber, these signals do not
 * terminate the process; after unsubscribing they do so again.
 */
export function terminationSignals(): Observable<NodeJS.Signals> {
  return merge(...TERMINATION.map((signal) => fromEvent(process, signal).pipe(map(() => signal))));
}

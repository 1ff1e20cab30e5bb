import { type Observable, fromEvent, map, merge } from 'rxjs';

/** What asks the process to end. SIGHUP is as SIGTERM: there is nothing that it would make be read again. */
const TERMINATION: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/**
 * Each signal that asks the process to end, by its name. Never completes. While it is subscribed to, these signals do
 * nothing else; on unsubscribing they end the process again, as without a listener.
 */
export function terminationSignals(): Observable<NodeJS.Signals> {
  return merge(...TERMINATION.map((signal) => fromEvent(process, signal).pipe(map(() => signal))));
}

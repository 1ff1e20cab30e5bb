import { Observable, defer, merge, mergeMap, retry, timer } from 'rxjs';
import type { Server } from '../../../server-address';
import type { Connection } from '../../connections/connection';
import { RECONNECT } from '../../connections/retry-delay';
import { switchedTo } from './replies';
import type { Sentinels } from './sentinels';

/** How often a connection to a sentinel is checked with a PING, in milliseconds, and how long the reply may take. */
const HEARTBEAT = 5000;

/**
 * The current master as each of the sentinels reports it: when it switches, and after each connect to a sentinel, since a
 * message may have been missed. The same master may be emitted several times. Never fails, never completes.
 *
 * Without these messages a master that was demoted while it was alive would be counted on until the sentinels make it a
 * replica, about ten seconds later, and everything counted there in the meantime would be lost.
 */
export function masterChanges(sentinels: Sentinels, listed: readonly Server[]): Observable<Server> {
  return merge(...listed.map((sentinel) => reportsOf(sentinel, sentinels)));
}

function reportsOf(sentinel: Server, sentinels: Sentinels): Observable<Server> {
  return defer(() => sentinels.connect(sentinel)).pipe(
    mergeMap((connection) => merge(heartbeat(connection), switches(connection, sentinels))),
    retry({ delay: (_, attempt) => timer(RECONNECT(attempt)), resetOnSuccess: true }),
  );
}

function switches(connection: Connection, sentinels: Sentinels): Observable<Server> {
  return new Observable((subscriber) => {
    connection
      .subscribe('+switch-master', (message) => {
        const master = switchedTo(message, sentinels.masterName);
        if (master !== undefined) subscriber.next(master);
      })
      // Only after the subscription, so that no switch is missed in between.
      .then(() => sentinels.master())
      .then(
        (master) => subscriber.next(master),
        // No sentinel knows the master now; a message follows when there is one.
        () => undefined,
      );
  });
}

/** Cuts the connection when its peer no longer answers. Emits nothing. */
function heartbeat(connection: Connection): Observable<never> {
  return new Observable(() => {
    const heartbeatTimer = setInterval(() => {
      const replyTimer = setTimeout(() => connection.destroy(), HEARTBEAT);
      function stopTimer(): void {
        clearTimeout(replyTimer);
      }
      connection.send('PING').then(stopTimer, stopTimer);
    }, HEARTBEAT);
    heartbeatTimer.unref();
    return () => clearInterval(heartbeatTimer);
  });
}

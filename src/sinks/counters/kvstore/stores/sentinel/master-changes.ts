import { Observable, defer, merge, mergeMap, retry, timer } from 'rxjs';
import type { Server } from '../../connections/address';
import { RECONNECT } from '../../connections/backoff';
import type { Connection } from '../../connections/connection';
import { switchedTo } from './replies';
import type { Sentinels } from './sentinels';

/** How often a sentinel that is silent is asked whether it is still there, in milliseconds, and how long it may take. */
const HEARTBEAT = 5000;

/**
 * Where the master is by now, as each of the sentinels tells it: at once when it switches, and when a sentinel could be
 * reached again, since news may have been missed. The same place may come several times. Never fails, never completes.
 *
 * Without it a master that was set back while it was alive would be counted on until the sentinels make it a replica, about
 * ten seconds, and everything counted there would be lost.
 */
export function masterChanges(sentinels: Sentinels, listed: readonly Server[]): Observable<Server> {
  return merge(...listed.map((sentinel) => newsOf(sentinel, sentinels)));
}

function newsOf(sentinel: Server, sentinels: Sentinels): Observable<Server> {
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
      // Only now is nothing missed any more.
      .then(() => sentinels.master())
      .then(
        (master) => subscriber.next(master),
        // Nobody knows the master now; who finds one will say so.
        () => undefined,
      );
  });
}

/** Cuts a connection whose peer has gone without a word; emits nothing. */
function heartbeat(connection: Connection): Observable<never> {
  return new Observable(() => {
    const beat = setInterval(() => {
      const patience = setTimeout(() => connection.destroy(), HEARTBEAT);
      function answered(): void {
        clearTimeout(patience);
      }
      connection.send('PING').then(answered, answered);
    }, HEARTBEAT);
    beat.unref();
    return () => clearInterval(beat);
  });
}

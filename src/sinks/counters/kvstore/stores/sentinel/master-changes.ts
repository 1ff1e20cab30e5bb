import { Observable, defer, merge, mergeMap, retry, timer } from 'rxjs';
import { startReplyTimer } from '../../../../../net/reply-timer';
import { ConditionLog } from '../../../../../streams/condition-log';
import { type Server, nameOf } from '../../../server-address';
import type { Connection } from '../../connections/connection';
import { RECONNECT } from '../../connections/retry-delay';
import { isReply } from '../../connections/store-error';
import type { StoreContext } from '../store-context';
import { isSwitchOf } from './replies';
import type { Sentinels } from './sentinels';

/** How often a connection to a sentinel is checked with a PING, in milliseconds, and how long the reply may take. */
const HEARTBEAT = 5000;

/** How soon a subscription that a sentinel has rejected is tried again, in milliseconds. */
const RESUBSCRIBE = 5000;

export type MasterChangesOptions = Pick<StoreContext, 'log' | 'name'>;

/**
 * The current master as each of the sentinels reports it: when it switches, and after each connect to a sentinel, since a
 * message may have been missed. The same master may be emitted several times. Never fails, never completes.
 *
 * Without these messages a master that was demoted while it was alive would be counted on until the sentinels make it a
 * replica, about ten seconds later, and everything counted there in the meantime would be lost.
 * When a sentinel rejects the subscription, this is logged, and the master is queried every few seconds.
 */
export function masterChanges(
  sentinels: Sentinels,
  listed: readonly Server[],
  options: MasterChangesOptions,
): Observable<Server> {
  return merge(...listed.map((sentinel) => reportsOf(sentinel, sentinels, options)));
}

function reportsOf(sentinel: Server, sentinels: Sentinels, { log, name }: MasterChangesOptions): Observable<Server> {
  const rejection = new ConditionLog(log, {
    begins: 'a sentinel rejects SUBSCRIBE; failovers may be noticed late',
    ends: 'a sentinel accepts SUBSCRIBE again',
    fields: { store: name, sentinel: nameOf(sentinel) },
  });
  return defer(() => sentinels.connect(sentinel)).pipe(
    mergeMap((connection) => merge(heartbeat(connection), switches(connection, { sentinel, sentinels, rejection }))),
    retry({ delay: (_, attempt) => timer(RECONNECT(attempt)), resetOnSuccess: true }),
  );
}

interface SwitchesOptions {
  readonly sentinel: Server;
  readonly sentinels: Sentinels;
  /** Of the subscription. */
  readonly rejection: ConditionLog;
}

function switches(connection: Connection, { sentinel, sentinels, rejection }: SwitchesOptions): Observable<Server> {
  return new Observable((subscriber) => {
    let resubscribeTimer: NodeJS.Timeout | undefined;
    function report(master: Promise<Server>): Promise<void> {
      return master.then(
        (server) => subscriber.next(server),
        // No sentinel knows the master now; a message follows when there is one. Or the connection is lost.
        () => undefined,
      );
    }
    function rejected(error: Error): void {
      // A lost connection reports itself.
      if (!isReply(error) || subscriber.closed) throw error;
      rejection.because(error.message);
      // After the reconnect, weir tries to subscribe again and queries the master.
      resubscribeTimer = setTimeout(() => connection.destroy(), RESUBSCRIBE);
      resubscribeTimer.unref();
    }
    connection
      .subscribe('+switch-master', (message) => {
        if (!isSwitchOf(message, sentinels.masterName)) return;
        // The message may be late, or be followed by another: the answer of its sentinel is current.
        sentinels.putFirst(sentinel);
        void report(sentinels.master());
      })
      .then(() => rejection.ended(), rejected)
      // Only after the subscription, so that no switch is missed in between.
      .then(
        () => report(sentinels.masterAfterGap(sentinel)),
        () => undefined,
      );
    return () => clearTimeout(resubscribeTimer);
  });
}

/** Cuts the connection when its peer no longer answers. Emits nothing. */
function heartbeat(connection: Connection): Observable<never> {
  return new Observable(() => {
    const heartbeatTimer = setInterval(() => {
      const stopTimer = startReplyTimer(HEARTBEAT, () => connection.destroy());
      connection.send('PING').then(stopTimer, stopTimer);
    }, HEARTBEAT);
    heartbeatTimer.unref();
    return () => clearInterval(heartbeatTimer);
  });
}

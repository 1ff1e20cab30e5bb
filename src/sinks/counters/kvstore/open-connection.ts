import { type Observable, tap } from 'rxjs';
import { type Server, nameOf } from './address';
import { type Connection, connect } from './connection';
import type { StoreContext } from './store-context';

/** A connection to a server that holds counters. */
export function openConnection(server: Server, context: StoreContext, mustBeMaster = false): Observable<Connection> {
  const { credentials, db, tls, instance, needlessPassword } = context;
  return connect({ server, credentials, db, tls, mustBeMaster, timeout: instance.timeout }).pipe(
    tap(({ hasNeedlessPassword }) => hasNeedlessPassword && needlessPassword.bad(nameOf(server))),
  );
}

import { type Observable, tap } from 'rxjs';
import { type Credentials, type Server, nameOf } from '../connections/address';
import { type Connection, connect } from '../connections/connection';
import type { Log } from '../../../../streams/ports/log';
import type { RetryDelay } from '../connections/backoff';
import type { Expiry } from '../counting/expiry';
import type { InstanceOptions } from '../connections/options';
import type { PoolStatistics } from '../connections/pool-statistics';
import type { StateLog } from '../connections/state-log';
import type { TlsMaterial } from '../connections/tls-material';

/** What the stores of every kind are made with. */
export interface StoreContext {
  readonly instance: InstanceOptions;
  readonly credentials: Credentials | undefined;
  readonly db: number;
  readonly tls: TlsMaterial | undefined;
  readonly expiry: Expiry;
  readonly closeConnectionOnReadonlyError: boolean;
  readonly windowsInFlight: number;
  readonly statistics: PoolStatistics;
  /** For connections: the waits of start-up until there has been one, then those of every day. */
  readonly backoff: RetryDelay;
  readonly log: Log;
  /** Told of servers that take everybody, although credentials were given. */
  readonly needlessPassword: StateLog;
  /** `main` or `per second`, for log lines. */
  readonly name: string;
}

/** A connection to a server that holds counters. */
export function openConnection(server: Server, context: StoreContext, mustBeMaster = false): Observable<Connection> {
  const { credentials, db, tls, instance, needlessPassword } = context;
  return connect({ server, credentials, db, tls, mustBeMaster, timeout: instance.timeout }).pipe(
    tap(({ hasNeedlessPassword }) => hasNeedlessPassword && needlessPassword.bad(nameOf(server))),
  );
}

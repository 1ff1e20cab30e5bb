import { type Observable, filter, merge, take, tap } from 'rxjs';
import type { Log } from '../../../../streams/ports/log';
import { type Server, nameOf } from '../../server-address';
import type { Credentials } from '../connections/address';
import { type Connection, connect } from '../connections/connection';
import type { InstanceOptions } from '../connections/options';
import type { KnownExpiries } from '../counting/known-expiries';
import { Pool } from '../connections/pool';
import type { PoolStatistics } from '../connections/pool-statistics';
import type { StartupDelay } from '../connections/retry-delay';
import type { Backoff } from '../../../../streams/backoff';
import { ConditionLog } from '../../../../streams/condition-log';
import type { TlsMaterial } from '../../tls-material';
import type { Expiry } from '../../expiry';
import type { BatchesInFlight } from './store-lane';

/** What stores of every kind need. */
export interface StoreContext {
  readonly instance: InstanceOptions;
  /** For a new connection to a server that holds counters. */
  readonly credentials: () => Credentials | undefined;
  /** For a new connection to a sentinel. */
  readonly sentinelCredentials: () => Credentials | undefined;
  readonly db: number;
  readonly tls: TlsMaterial | undefined;
  readonly expiry: Expiry;
  readonly knownExpiries: KnownExpiries;
  readonly closeConnectionOnReadonlyError: boolean;
  readonly inFlight: BatchesInFlight;
  readonly statistics: PoolStatistics;
  readonly startupDelay: StartupDelay;
  readonly log: Log;
  /** Logs servers that require no password although one is configured. */
  readonly unusedPasswordLog: ConditionLog;
  /** `main` or `per second`, for log lines. */
  readonly name: string;
}

/** Opens a connection to a server that holds counters. */
export function openConnection(server: Server, context: StoreContext, mustBeMaster = false): Observable<Connection> {
  const { credentials, db, tls, instance, unusedPasswordLog } = context;
  return connect({ server, credentials: credentials(), db, tls, mustBeMaster, timeout: instance.timeout }).pipe(
    tap(({ hasUnusedPassword }) => hasUnusedPassword && unusedPasswordLog.because(nameOf(server))),
  );
}

export interface PoolSource {
  readonly connect: () => Observable<Connection>;
  readonly retryDelay: Backoff;
}

/** Opens a pool of the size and with the limits of the instance. */
export function openPool({ instance, statistics }: StoreContext, source: PoolSource): Pool {
  return new Pool({
    ...source,
    size: instance.poolSize,
    opensExtra: instance.poolOnEmptyBehavior === 'CREATE',
    timeout: instance.timeout,
    statistics,
  });
}

/**
 * Logs when a pool has lost its last connection or cannot make the first, and when it is connected again. Logs while it is
 * subscribed to; completes when the pool is closed.
 *
 * @param server the server, or the name of the master
 */
export function logConnections(pool: Pool, { log, name }: StoreContext, server: string): Observable<unknown> {
  const failing = new ConditionLog(log, {
    begins: 'cannot connect to the counter store; retrying',
    ends: 'connected to the counter store',
    fields: { store: name, server },
  });
  return merge(
    pool.failures$.pipe(tap((error) => !pool.isConnected && failing.because(error.message))),
    pool.connected$.pipe(tap((isConnected) => isConnected && failing.ended())),
  );
}

/** Ends the delays of start-up at the first connection, while it is subscribed to. */
export function endStartup(connected$: Observable<boolean>, { startupDelay }: StoreContext): Observable<unknown> {
  return connected$.pipe(
    filter((isConnected) => isConnected),
    take(1),
    tap(() => startupDelay.end()),
  );
}

import { NEVER, Observable, tap } from 'rxjs';
import type { Count, CounterOperation } from '../../../limiter/counter-operation';
import type { Backoff } from '../../../streams/backoff';
import { type ConditionLines, ConditionLog } from '../../../streams/condition-log';
import type { CounterInstance, CounterLane } from '../../../streams/ports/counters';
import { Expiry } from '../counting';
import { type Server, nameOf } from '../server-address';
import type { TlsMaterial } from '../tls-material';
import { type Connection, type ConnectionOptions, connect } from './connection';
import { Deadline } from './deadline';
import { type Credentials, type Deployment, currentDeployment } from './deployment';
import type { InstanceOptions, KvstoreOptions } from './options';
import { Pool, PoolStatistics, RECONNECT, connectBackoff } from './pool';
import { storeError } from './store-error';
import { type Expiries, KnownExpiries } from './count';
import type { SendCommand } from './commands';

/** The servers of one instance of the store: a single server, a master that sentinels monitor, or a cluster. */
export interface Store {
  /** The lane of the server that holds the key of an operation. An operation that may have been counted is not sent again. */
  laneOf(operation: CounterOperation): CounterLane;
  /**
   * Runs commands on one key, on the server that holds it. They are run again from the first one when the key has moved; an error
   * reply that they throw is the error of this call alone.
   *
   * Rejects with a DecisionError.
   */
  run<T>(key: string, commands: (send: SendCommand) => Promise<T>): Promise<T>;
  /** Whether a connection is alive: the present state, then every change. */
  readonly connected$: Observable<boolean>;
  /** Connections that could not be made or were lost. */
  readonly failures$: Observable<Error>;
  close(): void;
}

/** Applies a batch, with the results of {@link CounterLane.apply}; rejects when the batch fails as a whole. */
export type ApplyBatch = (batch: readonly CounterOperation[], deadline: Deadline) => Promise<readonly Count[]>;

export interface InstanceParts {
  readonly options: InstanceOptions;
  readonly deployment: Deployment;
  readonly store: KvstoreOptions;
  readonly tls: TlsMaterial | undefined;
  /** `main` or `per second`, for log lines. */
  readonly name: string;
  /** For statistics. */
  readonly poolName: string;
}

/** What a store of any kind makes connections, pools, lanes and log lines with: the settings of its instance. */
export class Instance {
  readonly options: InstanceOptions;
  readonly deployment: Deployment;
  readonly expiries: Expiries;
  readonly closeConnectionOnReadonlyError: boolean;
  /** The delays of start-up until the first connection, then those after a loss. */
  readonly retryDelay: Backoff;
  readonly #parts: InstanceParts;
  readonly #statistics: PoolStatistics;
  readonly #unusedPassword: ConditionLog;
  readonly #current: () => Deployment;
  readonly #inFlight = new Set<Promise<void>>();

  constructor(parts: InstanceParts) {
    const { options, deployment, store, poolName } = parts;
    const { startup, expirationJitterMaxSeconds, closeConnectionOnReadonlyError, statistics } = store;
    this.#parts = parts;
    this.options = options;
    this.deployment = deployment;
    this.expiries = { expiry: new Expiry(expirationJitterMaxSeconds), known: new KnownExpiries() };
    this.closeConnectionOnReadonlyError = closeConnectionOnReadonlyError;
    const atStart = connectBackoff(startup.initialInterval, Math.max(startup.initialInterval, startup.maxInterval));
    this.retryDelay = (attempt) => (this.#statistics.hasOpened ? RECONNECT : atStart)(attempt);
    this.#statistics = new PoolStatistics(statistics, poolName);
    this.#unusedPassword = this.conditionLog({
      begins: 'the counter store requires no password, but one is configured; continuing without authentication',
    });
    this.#current = currentDeployment(options, deployment);
  }

  /** Opens a connection to a server that holds counters, with the credentials as they are now. */
  connect(server: Server, more: Partial<ConnectionOptions> = {}): Observable<Connection> {
    const { credentials } = this.#current();
    return this.#connect(server, credentials, more).pipe(
      tap(({ hasUnusedPassword }) => hasUnusedPassword && this.#unusedPassword.because(nameOf(server))),
    );
  }

  connectToSentinel(server: Server, timeout: number): Observable<Connection> {
    const { servers } = this.#current();
    const credentials = servers.kind === 'sentinel' ? servers.sentinelCredentials : undefined;
    return this.#connect(server, credentials, { timeout, db: 0, counts: false });
  }

  /** Opens a pool. @param server the server, or the name of the master, for log lines */
  openPool(server: string, open: () => Observable<Connection>): Pool {
    const { poolSize, poolOnEmptyBehavior, timeout } = this.options;
    return new Pool({
      connect: open,
      size: poolSize,
      mayExceed: poolOnEmptyBehavior === 'CREATE',
      timeout,
      retryDelay: this.retryDelay,
      statistics: this.#statistics,
      outage: this.conditionLog({
        begins: 'cannot connect to the counter store; retrying',
        ends: 'connected to the counter store',
        fields: { server },
      }),
    });
  }

  /** The lane of one server, with a pipeline window for each connection of its pool. */
  lane(apply: ApplyBatch, instance: CounterInstance, retired$: Observable<unknown> = NEVER): CounterLane {
    const { timeout, pipelineWindow, poolSize, poolOnEmptyBehavior, poolOnEmptyWaitDuration: after } = this.options;
    return {
      pipeline: {
        span: pipelineWindow,
        windowsInFlight: poolSize,
        whenFull:
          poolOnEmptyBehavior === 'WAIT'
            ? undefined
            : { behavior: poolOnEmptyBehavior === 'CREATE' ? 'exceed' : 'fail', after },
      },
      instance,
      retired$,
      // Written out, because each Promise in between costs every window.
      apply: (batch) =>
        new Observable((subscriber) => {
          const deadline = new Deadline(timeout);
          const end = (): void => {
            deadline.end();
            this.#inFlight.delete(done);
          };
          const done = apply(batch, deadline).then(
            (counts) => {
              end();
              subscriber.next(counts);
              subscriber.complete();
            },
            (error: unknown) => {
              end();
              subscriber.error(storeError(error));
            },
          );
          this.#inFlight.add(done);
        }),
    };
  }

  conditionLog(lines: ConditionLines): ConditionLog {
    const { store, name } = this.#parts;
    return new ConditionLog(store.log, { ...lines, fields: { store: name, ...lines.fields } });
  }

  /** Resolves when no batch of a lane is in flight. */
  async settled(): Promise<void> {
    await Promise.all(this.#inFlight);
  }

  #connect(
    server: Server,
    credentials: Credentials | undefined,
    more: Partial<ConnectionOptions>,
  ): Observable<Connection> {
    const { db, tls } = this.deployment;
    return connect({
      server,
      credentials,
      db,
      tls: tls ? this.#parts.tls : undefined,
      mustBeMaster: false,
      counts: true,
      timeout: this.options.timeout,
      ...more,
    });
  }
}

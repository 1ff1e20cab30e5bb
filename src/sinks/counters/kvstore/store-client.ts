import { NEVER, type Observable, combineLatest, distinctUntilChanged, map, tap } from 'rxjs';
import type { Counted, CountedLimit, Stored } from '../../../counting/operation';
import { type DecisionError, timedOut } from '../../../counting/decision-error';
import type { Backoff } from '../../../streams/backoff';
import { type ConditionLines, ConditionLog } from '../../../log/condition-log';
import type { Deadline, Timing } from '../../../streams/deadline';
import { THRESHOLDS } from '../../../streams/server-report';
import type { ServerState } from '../../../streams/server-state';
import type { CounterInstance, CounterLane } from '../../../streams/ports/counters';
import { type Server, nameOf } from '../server-address';
import type { StoreTls } from '../tls-material';
import { type Connection, type ConnectionOptions, connect } from './connection';
import { type Credentials, type Deployment, currentDeployment } from './deployment';
import type { InstanceOptions, KvstoreOptions } from './deployment';
import { Pool, PoolStatistics, RECONNECT, connectBackoff } from './pool';
import { isReply, replyCode, storeError } from './store-error';
import { Evictions } from './evictions';
import type { CountOptions } from './count-call';
import { TtlCache } from './ttl-cache';
import type { CommandRunner } from './administration';
import type { StepResult } from './commands';

/** The servers of one instance of the store: a single server, a master that sentinels monitor, or a cluster. */
export interface Store extends CommandRunner {
  /**
   * The lane of the server that holds the key of an operation. An operation that may have been counted is not sent
   * again.
   */
  laneOf(counter: Counted): CounterLane;
  /** Whether a connection is alive: the present state, then every change. */
  readonly connected$: Observable<boolean>;
  /** Connections that could not be made or were lost. */
  readonly failures$: Observable<Error>;
  /**
   * Opens a connection for messages, as `connect` does, to a server of the store; it fails when that leaves the store.
   */
  connect(): Observable<Connection>;
  /** Waits for what is in flight. */
  close(): Promise<void>;
}

export interface LaneParts extends Pick<CounterLane, 'apply'> {
  readonly instance: CounterInstance;
  readonly retired$?: Observable<unknown> | undefined;
}

/** Limits with this window length in seconds are counted on the per-second instance. */
const PER_SECOND = 1;

export function isPerSecond({ lengthSeconds, isOneOfSeveral }: CountedLimit): boolean {
  return lengthSeconds === PER_SECOND && isOneOfSeveral !== true;
}

/** Whether a server can be reached: a connection is alive, and it is not silent. */
export function isAnswering({ connected$ }: Pool, { reports$ }: ServerState): Observable<boolean> {
  return combineLatest([connected$, reports$]).pipe(
    map(([isConnected, { condition }]) => isConnected && condition !== 'silent'),
    distinctUntilChanged(),
  );
}

export interface StoreClientParts {
  readonly options: InstanceOptions;
  readonly deployment: Deployment;
  readonly store: KvstoreOptions;
  readonly tls: StoreTls | undefined;
  /** `main` or `per second`, for log lines. */
  readonly name: string;
  /** For statistics. */
  readonly poolName: string;
}

/** The time without an error reply after which a store counts as recovered. */
export const QUIET = { milliseconds: 1000, now: () => performance.now() };

/**
 * Most milliseconds for a query of a sentinel or for the slots: a server that hangs must not delay the query of the
 * next.
 */
const QUERY_TIMEOUT = 1000;

/** The log lines of a fault. */
const LINES = {
  begins: 'a counter store does not answer; its calls are not sent until it does',
  ends: 'a counter store answers again',
};

/** The log lines of a fault where calls are not held back. */
const LINES_WHILE_SENT = {
  ...LINES,
  begins: 'a counter store does not answer; calls are still sent to it, because STORE_BREAKER_FAILURES is 0',
};

/** What a store of any kind makes connections, pools and lanes with, turns replies into counts with, and logs with. */
export class StoreClient {
  readonly options: InstanceOptions;
  readonly deployment: Deployment;
  readonly scheduler: Timing;
  /** For the nodes that hold the slots of their keys. */
  readonly countOptions: CountOptions;
  /** Called with the name of a server that has replied that it is a read-only replica. */
  onReadonly: (server: string) => void = () => undefined;
  /** The time for a query of a sentinel or for the slots, in milliseconds. */
  readonly queryTimeout: number;
  /** The delays of start-up until the first connection, then those after a loss. */
  readonly retryDelay: Backoff;
  readonly #parts: StoreClientParts;
  readonly #statistics: PoolStatistics;
  readonly #unusedPassword: ConditionLog;
  readonly #errors: ConditionLog;
  readonly #keyErrors: ConditionLog;
  readonly #scriptRejections: ConditionLog;
  readonly #invalidReplies: ConditionLog;
  readonly #evictions: Evictions | undefined;
  readonly #current: () => Deployment;

  constructor(parts: StoreClientParts) {
    const { options, deployment, store, poolName } = parts;
    const { startup, expirationJitterMaxSeconds, statistics } = store;
    this.#parts = parts;
    this.options = options;
    this.deployment = deployment;
    this.scheduler = store.scheduler;
    this.queryTimeout = Math.min(options.timeout || QUERY_TIMEOUT, QUERY_TIMEOUT);
    this.countOptions = {
      jitter: expirationJitterMaxSeconds,
      known: new TtlCache(),
      knownStates: new TtlCache(true),
      isAsking: false,
      now: store.now,
    };
    const atStart = connectBackoff(startup.initialInterval, Math.max(startup.initialInterval, startup.maxInterval));
    this.retryDelay = (attempt) => (this.#statistics.hasOpened ? RECONNECT : atStart)(attempt);
    this.#statistics = new PoolStatistics(statistics, poolName);
    this.#unusedPassword = this.conditionLog({
      begins: 'the counter store requires no password, but one is configured; continuing without authentication',
    });
    this.#errors = this.#replyLog(
      'the counter store replies with errors; the calls fail',
      'the counter store no longer replies with errors',
    );
    this.#keyErrors = this.#replyLog('cannot count on the key of a counter; its calls fail');
    this.#scriptRejections = this.#replyLog(
      'the counter store rejects scripts; counting with plain commands, not atomically',
      'the counter store accepts scripts again on new connections',
    );
    this.#invalidReplies = this.#replyLog(
      'the counter store sends replies that do not fit their commands; their calls fail, and the connection is closed',
    );
    if (store.watchesEvictions === true) {
      this.#evictions = new Evictions({
        scheduler: this.scheduler,
        conditionLog: (lines) => this.conditionLog(lines),
        evicted: statistics.counter(`ratelimit.${poolName}.evicted_keys`),
      });
    }
    this.#current = currentDeployment(options, deployment);
  }

  /** Opens a connection to a server that holds counters, with the credentials as they are now. */
  connect(server: Server, overrides: Partial<ConnectionOptions> = {}): Observable<Connection> {
    const { credentials } = this.#current();
    return this.#connect(server, credentials, overrides).pipe(
      tap(({ hasUnusedPassword }) => hasUnusedPassword && this.#unusedPassword.because(nameOf(server))),
    );
  }

  connectToSentinel(server: Server): Observable<Connection> {
    const { servers } = this.#current();
    const credentials = servers.kind === 'sentinel' ? servers.sentinelCredentials : undefined;
    return this.#connect(server, credentials, { timeout: this.queryTimeout, db: 0, counts: false });
  }

  /**
   * What is known of a server from now on. @param server it, or the name of the master @param probe asks it for a sign
   * of life
   */
  stateOf(server: string, probe: () => void): ServerState {
    const { name: store } = this.#parts;
    const { timeout } = this.options;
    const { servers } = this.#parts.store;
    return servers.open({
      name: { store, server },
      timeout,
      silence: Math.min(THRESHOLDS.silent, timeout || Infinity),
      probe,
      lines: servers.holdsBack ? LINES : LINES_WHILE_SENT,
    });
  }

  /** Opens a pool, which reports its connections to the state of its server. */
  openPool(state: ServerState, open: () => Observable<Connection>): Pool {
    const { poolSize, poolOnEmptyBehavior, timeout } = this.options;
    const pool = new Pool({
      connect: open,
      size: poolSize,
      mayExceed: poolOnEmptyBehavior === 'CREATE',
      timeout,
      retryDelay: this.retryDelay,
      scheduler: this.scheduler,
      statistics: this.#statistics,
      state,
      outage: this.conditionLog({
        begins: 'cannot connect to the counter store; retrying',
        ends: 'connected to the counter store',
        fields: { server: state.name.server },
      }),
    });
    this.#evictions?.watch(pool);
    return pool;
  }

  /**
   * The lane of one server, with a pipeline window for each connection of its pool. @param server undefined: it fails
   * its calls
   */
  lane(server: ServerState | undefined, { apply, instance, retired$ = NEVER }: LaneParts): CounterLane {
    const { pipelineWindow, poolSize, poolOnEmptyBehavior, poolOnEmptyWaitDuration: after } = this.options;
    return {
      pipeline: {
        span: pipelineWindow,
        windowsInFlight: poolSize,
        whenFull:
          poolOnEmptyBehavior === 'WAIT'
            ? undefined
            : { behavior: poolOnEmptyBehavior === 'CREATE' ? 'exceed' : 'fail', after },
      },
      server,
      instance,
      retired$,
      apply,
    };
  }

  /**
   * Whether all steps were counted. Logs when the server begins or stops to reply with errors, and to reject scripts.
   */
  counted(results: readonly StepResult[], { scriptRejection }: Connection): results is readonly Stored[] {
    if (scriptRejection === undefined) this.#scriptRejections.ended();
    else this.#scriptRejections.because(replyCode(scriptRejection));
    const areAllCounted = !results.some((result) => result instanceof Error);
    if (areAllCounted) this.#errors.ended();
    return areAllCounted;
  }

  /** @returns the error for the caller of an operation that got an error reply, or whose connection was lost */
  failed(error: Error, connection: Connection, deadline?: Deadline): DecisionError {
    if (deadline?.hasPassed === true && !isReply(error)) return timedOut();
    const code = replyCode(error);
    const failure = storeError(error);
    if (code === '') return failure;
    if (failure.isKeyError) {
      this.#keyErrors.because(failure.message);
      return failure;
    }
    this.#errors.because(`${code}: ${failure.message}`);
    if (code === 'READONLY') {
      if (this.#parts.store.closeConnectionOnReadonlyError) connection.cut(error);
      this.onReadonly(connection.server);
    }
    return failure;
  }

  conditionLog(lines: ConditionLines): ConditionLog {
    const { store, name } = this.#parts;
    return new ConditionLog(store.log, { ...lines, fields: { store: name, ...lines.fields } });
  }

  #replyLog(begins: string, ends?: string): ConditionLog {
    return this.conditionLog({ begins, ends, quiet: QUIET });
  }

  #connect(
    server: Server,
    credentials: Credentials | undefined,
    overrides: Partial<ConnectionOptions>,
  ): Observable<Connection> {
    const { db, tls } = this.deployment;
    const { timeout } = this.options;
    return connect({
      server,
      credentials,
      db,
      tls: tls ? this.#parts.tls : undefined,
      mustBeMaster: false,
      counts: true,
      timeout: this.#parts.store.hasDecisionTimeout === true ? this.queryTimeout : timeout,
      scheduler: this.scheduler,
      onInvalidReply: (error) => this.#invalidReplies.because(error.message),
      ...overrides,
    });
  }
}

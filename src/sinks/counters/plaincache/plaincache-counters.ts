import {
  BehaviorSubject,
  NEVER,
  type Observable,
  type SchedulerLike,
  combineLatest,
  distinctUntilChanged,
  filter,
  map,
  of,
  switchMap,
  take,
} from 'rxjs';
import type { Counted } from '../../../counting/operation';
import { DecisionError } from '../../../counting/decision-error';
import type { Statistics } from '../../../statistics/statistics';
import type { CounterAdministration, StoredCounter } from '../../../streams/ports/counter-administration';
import type { CounterLane, Counters } from '../../../streams/ports/counters';
import type { Log } from '../../../log/log';
import type { ServerStates } from '../../../streams/server-views';
import { ConditionLog } from '../../../log/condition-log';
import { lifetimeOf, randomPart } from '../expiry';
import { type StoreTlsFiles, storeTls } from '../tls-material';
import {
  type StoredValue,
  type WireKey,
  type WriteOutcome,
  get,
  metaGet,
  selectNode,
  wireKey,
  write,
} from './commands';
import type { Connection } from './connection';
import { Node, plaincacheStatistics } from './node';
import { lookUpSrv, srvServers } from './srv-records';

/**
 * The time that an exchange with a server may take, in milliseconds: that of the Go service's client, which has no
 * setting.
 */
const TIMEOUT_MS = 500;

export interface PlaincacheOptions {
  /** The servers in their order: PLAINCACHE_HOST_PORT. */
  readonly hostPort: readonly string[];
  /**
   * The DNS record that lists the servers instead, and milliseconds between look-ups: PLAINCACHE_SRV,
   * PLAINCACHE_SRV_REFRESH.
   */
  readonly srv: string | undefined;
  readonly srvRefresh: number;
  /** Undefined: without TLS. */
  readonly tlsFiles: StoreTlsFiles | undefined;
  /** How long a pipeline window gathers, in milliseconds. */
  readonly windowSpan: number;
  /** EXPIRATION_JITTER_MAX_SECONDS */
  readonly expirationJitterMaxSeconds: number;
  readonly scheduler: SchedulerLike;
  readonly statistics: Statistics;
  /** Makes the states of servers. */
  readonly servers: ServerStates;
  readonly log: Log;
  /**
   * The time that an exchange with a server may take, in milliseconds: STORE_DECISION_TIMEOUT. Undefined: that of the
   * Go service.
   */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds between checks of a server without requests; undefined: none is made. */
  readonly checkEvery?: number | undefined;
  /**
   * Whether counters that a server does not send count as 0; otherwise their calls are without a count. Undefined: they
   * do.
   */
  readonly countsAsZero?: boolean;
  /** Looks up a DNS record; the name servers of the system if undefined. */
  readonly lookUp?: typeof lookUpSrv;
}

/** Counters in memcached. */
export interface PlaincacheCounters extends Counters, CounterAdministration {
  /** Emits once the servers are known, and completes. */
  readonly ready$: Observable<unknown>;
  /** The servers or the record, for log lines. */
  readonly description: string;
}

/**
 * Counters in memcached: read, decided, answered, and then incremented. A server that does not answer has no counts, so
 * the limits of its keys do not apply; the health of the store follows the servers.
 *
 * @throws Error that names the address or the file that cannot be used
 */
export function plaincacheCounters(options: PlaincacheOptions): PlaincacheCounters {
  const { hostPort, srv, srvRefresh: refresh, statistics, log, scheduler, tlsFiles } = options;
  const context = {
    ...options,
    tls: tlsFiles && storeTls(tlsFiles, log),
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    countsAsZero: options.countsAsZero ?? true,
    instance: { lanesAtOnce: Infinity },
    statistics: plaincacheStatistics(statistics),
    rejections: new ConditionLog(log, { begins: 'a memcached server rejected a counter' }),
  };
  const nodes$ = new BehaviorSubject<readonly Node[]>([]);
  const leaving = new Set<Promise<void>>();

  function replaceNodes(names: readonly string[]): void {
    const present = new Map(nodes$.value.map((node) => [node.name, node]));
    const next = names.map((name) => present.get(name) ?? new Node(name, context));
    nodes$.next(next);
    for (const node of present.values()) {
      if (next.includes(node)) continue;
      const left = node.retire().finally(() => leaving.delete(left));
      leaving.add(left);
    }
  }

  const lookUp = options.lookUp ?? lookUpSrv;
  const names$ = srv === undefined ? of(hostPort) : srvServers({ record: srv, refresh, log, scheduler, lookUp });
  const subscription = names$.subscribe(replaceNodes);

  return {
    ...counterAdministration(
      (key) => (nodes$.value.length === 0 ? undefined : selectNode(key, nodes$.value)),
      options.expirationJitterMaxSeconds,
    ),
    laneOf: (operation) => laneOf(operation, nodes$.value),
    connected$: nodes$.pipe(switchMap(anyIsUp), distinctUntilChanged()),
    description: srv ?? hostPort.join(', '),
    ready$: nodes$.pipe(
      filter((nodes) => nodes.length > 0),
      take(1),
    ),
    close: async () => {
      subscription.unsubscribe();
      await Promise.all([...nodes$.value.map((node) => node.retire()), ...leaving]);
    },
  };
}

function laneOf({ key }: Counted, nodes: readonly Node[]): CounterLane {
  const wire = wireKey(key);
  return nodes.length === 0 ? NO_NODES : selectNode(wire, nodes);
}

/** While the servers are not known. */
const NO_NODES: CounterLane = {
  pipeline: { span: 0, windowsInFlight: 1, whenFull: undefined },
  instance: { lanesAtOnce: 1 },
  retired$: NEVER,
  apply: () => Promise.reject(unknownServers()),
};

/** Whether any of the nodes answers. */
function anyIsUp(nodes: readonly Node[]): Observable<boolean> {
  if (nodes.length === 0) return of(true);
  return combineLatest(nodes.map(({ isUp$ }) => isUp$)).pipe(map((states) => states.includes(true)));
}

/**
 * Administers counters between the batches of their servers. @param nodeOf undefined while the servers are not known
 */
function counterAdministration(nodeOf: (key: WireKey) => Node | undefined, jitter: number): CounterAdministration {
  function administer(
    { key }: Counted,
    run: (connection: Connection, wire: WireKey) => Promise<StoredCounter>,
  ): Promise<StoredCounter> {
    const wire = wireKey(key);
    const node = nodeOf(wire);
    if (node === undefined) throw unknownServers();
    return node.administer((connection) => run(connection, wire));
  }

  return {
    readCounter: async (counter) => administer(counter, read),
    changeCounter: async (counter, count) =>
      administer(counter, async (connection, key) => {
        const before = await read(connection, key);
        // The expiry is sent in whole seconds, and one is added to it.
        const left = before.timeToLive === null ? undefined : Math.max(1, before.timeToLive - 1);
        const lifetime = left ?? lifetimeOf(counter.limit) + randomPart(jitter);
        const kind = count === null ? 'delete' : 'set';
        const outcomes: WriteOutcome[] = [];
        await connection.send(...write([{ kind, key, hits: count ?? 0, lifetime }], outcomes));
        if (!(outcomes[0] instanceof Error)) return before;
        throw new DecisionError('store_failed', 'a memcached server rejected the change', { cause: outcomes[0] });
      }),
  };
}

async function read(connection: Connection, key: WireKey): Promise<StoredCounter> {
  const [counter] = await connection.send(metaGet(key));
  if (counter !== undefined && counter !== 'unsupported') return counter;
  const values = new Map<WireKey, StoredValue>();
  await connection.send(...get(new Set([key]), values));
  return { count: values.get(key) ?? 0, timeToLive: null };
}

function unknownServers(): DecisionError {
  return new DecisionError('store_failed', 'the memcached servers are not known yet', { isUncounted: true });
}

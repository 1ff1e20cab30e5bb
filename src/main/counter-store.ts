import { type Observable, of } from 'rxjs';
import type { Settings } from '../settings/settings';
import { type StoreAbilities, storeAbilities } from '../settings/stores';
import type { FreedKeys } from '../sinks/counters/kvstore/freed-keys';
import { MemoryCounters } from '../sinks/counters/memory/memory-counters';
import { usableMemory } from '../sources/usable-memory';
import { GIVEN_BACK } from '../statistics/statistics';
import type { CounterAdministration } from '../streams/ports/counter-administration';
import type { Counters } from '../streams/ports/counters';
import type { ReservationStore } from '../streams/ports/reservations';
import { THRESHOLDS } from '../streams/server-report';
import { ServerStates } from '../streams/server-views';
import type { Channel } from '../workers/channel';
import { RemoteCounters } from '../workers/counters';
import type { App } from './app';
import { decisionTimeout, kvstoreOptions, plaincacheOptions } from './options';
import { turnScheduler } from './turn-scheduler';

/**
 * The part of the usable memory that counters in memory take by default. The rest is for requests in flight, of which
 * the gRPC listener holds up to 256 MiB, for statistics, and for the garbage collector, which slows down in a heap that
 * is nearly full.
 */
const COUNTERS_SHARE = 1 / 4;

/** A counter store, and what the decision path, the start of the service and operators need from it. */
export interface CounterStore {
  readonly counters: Counters & CounterAdministration;
  /** What is known of its servers. */
  readonly servers: ServerStates;
  readonly can: StoreAbilities;
  /** The store of reservations; a text: why there is none. */
  readonly reservations: ReservationStore | string;
  /** How processes tell one another of counters that were reduced; undefined: they do not, or have no local cache. */
  readonly freedKeys?: FreedKeys | undefined;
  /** Emits when the store can be used; fails when that takes longer than the settings allow. */
  readonly ready$: Observable<unknown>;
  /** The kind and the addresses of the store, without credentials, for log lines. */
  readonly description: string;
}

/** What a store is opened with. */
interface OpenedWith {
  readonly app: App;
  /** The number of this process among those of the instance. */
  readonly worker: number;
  readonly parts: Pick<CounterStore, 'can' | 'servers'>;
}

/** By BACKEND_TYPE. A store is loaded only when it is used: the client library of Redis takes 6 MB of memory. */
const STORES: Readonly<Record<Settings['backendType'], (opened: OpenedWith) => CounterStore | Promise<CounterStore>>> =
  {
    memory: ({ app }) => memoryStore(app),
    kvstore: openKvstore,
    plaincache: openPlaincache,
  };

/**
 * Opens the counter store that the settings select.
 *
 * @param worker the number of this process among those of the instance
 * @throws Error that names the setting or the TLS file that cannot be used
 */
export async function counterStore(app: App, worker = 1): Promise<CounterStore> {
  const parts = { can: storeAbilities(app.settings), servers: serverStates(app, decisionTimeout(app)) };
  return STORES[app.settings.backendType]({ app, worker, parts });
}

async function openKvstore({ app, worker, parts }: OpenedWith): Promise<CounterStore> {
  const { statistics, log } = app;
  if (worker === 1) noteTimeouts(app);
  const { kvstoreCounters } = await import('../sinks/counters/kvstore/kvstore-counters.js');
  const counters = kvstoreCounters({
    ...{ ...kvstoreOptions(app, log), servers: parts.servers, statistics },
    ...{ scheduler: turnScheduler, watchesEvictions: worker === 1 },
  });
  const { reservations, freedKeys, ready$, description } = counters;
  return { ...parts, counters, reservations, freedKeys, ready$, description: `kvstore (${description})` };
}

async function openPlaincache({ app, parts }: OpenedWith): Promise<CounterStore> {
  const { statistics, log } = app;
  const { plaincacheCounters } = await import('../sinks/counters/plaincache/plaincache-counters.js');
  const options = { ...plaincacheOptions(app), servers: parts.servers, statistics, log, scheduler: turnScheduler };
  const counters = plaincacheCounters(options);
  const { ready$, description } = counters;
  return { ...parts, counters, reservations: missing(parts.can), ready$, description: `memcached (${description})` };
}

/** Why a store has no reservations. */
function missing({ reservations }: StoreAbilities): string {
  return reservations === true ? '' : reservations;
}

/** A timeout that was set for calls that wait is no longer what they wait: they are held back before. */
function noteTimeouts({ settings, given, nameOf, log }: App): void {
  const fields = [
    'kvstoreTimeout',
    ...(settings.kvstorePersecond ? ['kvstorePersecondTimeout' as const] : []),
  ] as const;
  for (const field of fields) {
    const isLonger = settings[field] === 0 || settings[field] > THRESHOLDS.silent;
    if (!given.has(field) || !isLonger || settings.storeBreakerFailures === 0) continue;
    log.notice('this timeout bounds what is in flight: a server that has answered nothing for a second is not called', {
      setting: nameOf(field),
    });
  }
}

/** @param limit most milliseconds for the answer to a probe */
function serverStates({ settings, statistics, log }: App, limit?: number): ServerStates {
  return new ServerStates({
    ...{ statistics, log, limit, failures: settings.storeBreakerFailures },
    scheduler: turnScheduler,
  });
}

/** Counters in the memory of this process. */
export interface MemoryStore extends CounterStore {
  readonly counters: MemoryCounters;
}

export function memoryStore(app: App): MemoryStore {
  const { settings, given, statistics, log } = app;
  if (!given.has('backendType')) {
    log.warn('no store address is set: counters are kept in the memory of this process and are lost when it ends');
  }
  const givenBack = statistics.counter(GIVEN_BACK);
  const counters = new MemoryCounters({
    maxKeys: settings.memoryMaxKeys,
    maxBytes: settings.memoryMaxBytes ?? Math.floor(usableMemory() * COUNTERS_SHARE),
    windowSpan: settings.kvstorePipelineWindow,
    now: Date.now,
    onGivenBack: () => givenBack.add(1),
    log,
  });
  statistics.gauge('ratelimit.memory.keys', () => counters.size);
  statistics.gauge('ratelimit.memory.bytes', () => counters.bytes);
  statistics.gauge('ratelimit.memory.evicted_keys', () => counters.evictions);
  const can = { ...storeAbilities(settings), leases: 'counters in this process need none' };
  return { ...inMemory(counters, serverStates(app)), can };
}

/** The counters in the memory of the primary, seen from a worker. */
export function remoteStore(app: App, channel: Channel): CounterStore {
  const servers = serverStates(app);
  const counters = new RemoteCounters(channel, {
    windowSpan: app.settings.kvstorePipelineWindow,
    servers,
    log: app.log,
  });
  return { ...inMemory(counters, servers), can: storeAbilities(app.settings) };
}

function inMemory<T extends ReservationStore>(counters: T, servers: ServerStates) {
  return { counters, servers, reservations: counters, ready$: of(true), description: 'memory' };
}

import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { NEVER, type Observable, concatWith, map } from 'rxjs';
import { RateLimitRequest } from '../gen/envoy/service/ratelimit/v3/rls';
import { callFrames } from '../grpc/rate-limit/call-frames';
import { Operation } from '../counting/operation';
import { ALGORITHMS } from '../rules/rule-config';
import { readSettings } from '../settings/read-settings';
import { BoundedLines } from '../sinks/logs/bounded-lines';
import type { Logger } from '../sinks/logs/logger';
import { loadRules } from '../sources/loading/load-rules';
import type { Counters } from '../streams/ports/counters';
import type { RuleEvent } from '../streams/ports/rule-source';
import { Trip } from '../streams/deadline';
import { asError } from '../text/thrown';
import { type App, appOf } from './app';
import { type CounterStore, memoryStore } from './counter-store';
import { decisionPath } from './decision-path';
import { Rejections } from './rejections';
import { Servers } from './servers';

/** Milliseconds that a start may take longer for it. */
const MAX_DURATION = 300;
/** Connections to each listener, one after the other, and the calls on each. */
const CONNECTIONS = 2;
const CALLS = 20;

const ENVIRONMENT = {
  BACKEND_TYPE: 'memory',
  HOST: '127.0.0.1',
  PORT: '0',
  GRPC_HOST: '127.0.0.1',
  GRPC_PORT: '0',
  LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
};
const BY_ALGORITHM = ALGORITHMS.map((name) => {
  return `  - { key: k, value: ${name}, rate_limit: { unit: minute, requests_per_unit: 100, algorithm: ${name} } }`;
});
const RULES = `
domain: d
descriptors:
  - { key: k, rate_limit: { unit: second, requests_per_unit: 100 } }
${BY_ALGORITHM.join('\n')}
  - { key: n, descriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 3 } }] }
`;
/** The descriptors of the calls, in turn: of each kind of rule, and one that is soon over its limit. */
const DESCRIPTORS = [{ k: 'a' }, ...ALGORITHMS.map((k) => ({ k })), { n: 'x', k: 'y' }];

function nothing(): void {}

const SILENT: Logger = {
  isDebug: false,
  ...{ debug: nothing, info: nothing, notice: nothing, warn: nothing, error: nothing, fatal: nothing },
};

/** What the steps of a warm-up share. */
interface Progress {
  readonly signal: AbortSignal;
  /** The reads and calls that were answered. */
  answers: number;
}

/**
 * Runs the code that decides before the first caller needs it: a proxy waits for 20 ms by default, and then lets the
 * call pass. Ends within {@link MAX_DURATION}; never fails, because the service can do without.
 *
 * @param store is read from: a counter that is not there, which leaves nothing in it
 */
export async function warmUp(
  { settings, log }: Pick<App, 'settings' | 'log'>,
  { counters }: CounterStore,
): Promise<void> {
  const ended = new AbortController();
  const progress: Progress = { signal: ended.signal, answers: 0 };
  // For example, the store does not answer, or there is no loopback address.
  function note(error: unknown): void {
    if (!progress.signal.aborted) log.debug('a part of the warm-up has failed', { error: asError(error) });
  }
  const all = readOften(counters, `${settings.cacheKeyPrefix}weir_warm_up`, progress)
    .catch(note)
    .then(() => serveOften(progress))
    .catch(note);
  await Promise.race([all, sleep(MAX_DURATION, undefined, { ref: false })]);
  ended.abort();
  log.debug('warmed up', { answers: progress.answers });
}

async function readOften(counters: Counters, key: string, progress: Progress): Promise<void> {
  const read = new Operation({ requestsPerUnit: 1, lengthSeconds: 60 }, key, 0);
  const lane = counters.laneOf(read);
  for (let index = 0; index < CALLS && !progress.signal.aborted; index += 1) {
    const trip = new Trip();
    lane.server?.trips.begin(trip);
    await lane.apply([read], trip);
    lane.server?.trips.ended(trip);
    progress.answers += 1;
  }
}

/** Runs calls through servers, rules, counters and statistics of its own, on the loopback address. */
async function serveOften(progress: Progress): Promise<void> {
  const app = appOf(readSettings(ENVIRONMENT), SILENT, new BoundedLines({ write: nothing }));
  const store = memoryStore(app);
  const path = await decisionPath(app, { rules$: rules(app), store, termination$: NEVER });
  const subscriptions = path.flow$.subscribe();
  const servers = new Servers(app, { ...path, rejections: new Rejections(app) });
  try {
    const { grpc, http } = await servers.listen();
    for (let connection = 0; connection < CONNECTIONS; connection += 1) {
      await callOver(grpc as AddressInfo, grpcCall, progress);
      await callOver(http, httpCall, progress);
    }
  } finally {
    await servers.drainGrpc(0);
    await servers.closeHttp();
    subscriptions.unsubscribe();
    await store.counters.close();
  }
}

function rules({ settings }: App): Observable<RuleEvent> {
  const raw = [{ path: 'warm-up.yaml', content: Buffer.from(RULES) }];
  return loadRules(raw, { form: 'files', settings }).pipe(
    map(({ ruleset }): RuleEvent => {
      const origin = { source: '', version: '' };
      return { kind: 'loaded', ruleset: ruleset!, origin, warnings: [] };
    }),
    concatWith(NEVER),
  );
}

/** @param callOf the bytes of a call by its number on its connection, from 0 */
async function callOver(at: AddressInfo, callOf: (index: number) => Buffer, progress: Progress): Promise<void> {
  const socket = connect(at.port, at.address);
  try {
    for (let index = 0; index < CALLS; index += 1) {
      socket.write(callOf(index));
      await once(socket, 'data', { signal: progress.signal });
      progress.answers += 1;
    }
  } finally {
    socket.destroy();
  }
}

function httpCall(index: number): Buffer {
  const body = JSON.stringify({ domain: 'd', descriptors: [{ entries: entriesOf(index) }] });
  return Buffer.from(`POST /json HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
}

function grpcCall(index: number): Buffer {
  const descriptors = [{ entries: entriesOf(index), limit: undefined, hitsAddend: undefined, isNegativeHits: false }];
  return callFrames(index, RateLimitRequest.encode({ domain: 'd', descriptors, hitsAddend: 0 }).finish());
}

function entriesOf(index: number): { key: string; value: string }[] {
  return Object.entries(DESCRIPTORS[index % DESCRIPTORS.length]!).map(([key, value]) => ({ key, value }));
}

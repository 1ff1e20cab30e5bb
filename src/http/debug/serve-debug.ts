import type { Middleware } from 'koa';
import type { TcpAddress } from '../../net/listen';
import type { WorkerInfo } from '../../operators/live-answers';
import type { CurrentConfig } from '../../streams/config';
import type { Log } from '../../log/log';
import { OPERATOR_LIMITS, OPERATOR_TIMEOUTS, type OnHttpRejected } from '../limits';
import { GET, HttpListener, type Route, textPage } from '../listener';
import type { Authorization } from '../operators/authorization';
import { type ProbedReadiness, probes } from '../probes';
import type { HttpTls } from '../tls-acceptor';
import { browserGuard } from './browser-guard';
import { consoleRoutes } from './console';
import { type IndexLine, type ReadStatistics, indexPage, rlconfig, stats } from './pages';
import { type DebugWorkers, protectProfiles } from './profile-access';
import { profilesOfProcess } from './profiles';

export interface DebugServerOptions extends TcpAddress {
  readonly readiness: ProbedReadiness;
  /** The version of weir, for the index. */
  readonly version: string;
  readonly config: () => CurrentConfig;
  readonly statistics: ReadStatistics;
  /** The other processes of this instance, if there are any. */
  readonly workers?: DebugWorkers | undefined;
  /** The names by which it may be called: see {@link browserGuard}. */
  readonly allowedHosts: readonly string[];
  /** Whether to serve the console. */
  readonly hasConsole: boolean;
  readonly authorization: Authorization;
  /** Handles `/api` and what is below it. */
  readonly operatorsApi: Middleware;
  /** The bytes that the process can still allocate; by default as Node reports them. */
  readonly availableMemory?: () => number;
  /** Undefined: without TLS. */
  readonly tls?: HttpTls | undefined;
  readonly onRejected: OnHttpRejected;
  readonly log: Log;
}

/** While a profile is recorded, nothing is sent for up to five minutes. A shutdown does not wait for it. */
const TIMEOUTS = { ...OPERATOR_TIMEOUTS, response: 300_000, inactive: 400_000 };

/**
 * Starts the debug server: an index, the console, `/rlconfig`, `/stats`, `/healthcheck`, `/livez`, `/readyz`,
 * `/debug/pprof/` and the operators' API.
 *
 * @throws when it cannot listen, with a human-readable message
 */
export function serveDebug(options: DebugServerOptions): Promise<HttpListener> {
  const { version, config, statistics, workers, availableMemory, operatorsApi, onRejected, log } = options;
  const profiles = protectProfiles(profilesOfProcess(availableMemory), options.authorization, workers);
  const fields = workers === undefined ? ['token'] : ['worker', 'token'];
  const profileLines = profiles
    .flatMap((profile): readonly IndexLine[] => [profile, ...(profile.variants ?? [])])
    .map((line) => (line.form === undefined ? line : { ...line, form: [...line.form, ...fields] }));
  const guard = browserGuard(options.allowedHosts);
  const pages: readonly Route[] = [
    ...(options.hasConsole ? consoleRoutes() : []),
    rlconfig(config),
    stats(statistics),
    ...probes(options.readiness),
    {
      ...indexPage('/debug/pprof/', 'weir: profiles', profileLines),
      description: 'profiles of the running service',
    },
    { path: '/debug/pprof', allow: GET, handle: (ctx) => ctx.redirect('/debug/pprof/') },
    ...(workers === undefined ? [] : [textPage('/workers', WORKERS, () => workers.list().map(lineOf).join(''))]),
  ];
  const rulesLine = { path: '/api/rules', description: "the active rules as a tree: one path of the operators' API" };
  const listed: readonly IndexLine[] = [...pages.filter(({ description }) => description !== undefined), rulesLine];
  return new HttpListener({
    before: (ctx, next) => {
      guard(ctx);
      return operatorsApi(ctx, next);
    },
    routes: [indexPage('/', `weir ${version}: debug`, listed), ...pages, ...profiles],
    available: ['/', ...listed.map(({ path }) => path)],
    timeouts: TIMEOUTS,
    limits: OPERATOR_LIMITS,
    tls: options.tls,
    onRejected,
    log,
  }).listen(options);
}

const WORKERS = 'the worker processes, one per line';

function lineOf({ worker, pid, isServing, isResponsive, connections, uptimeSeconds, restarts }: WorkerInfo): string {
  const state = !isServing ? 'starting' : isResponsive ? 'serving' : 'not answering';
  const uptime = Math.floor(uptimeSeconds);
  return (
    `worker ${worker}: pid=${pid ?? 'none'} state=${state} connections=${connections} ` +
    `uptime=${uptime}s restarts=${restarts}\n`
  );
}

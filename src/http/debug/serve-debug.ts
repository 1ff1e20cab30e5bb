import { Router } from '@koa/router';
import Koa, { type Middleware } from 'koa';
import type { Check, Health } from '../../streams/readiness';
import type { Log } from '../../streams/ports/log';
import { healthcheckRoute } from '../healthcheck';
import { livez, readyzRoute } from '../probes';
import { errorBoundary } from '../server/error-boundary';
import { logConnectionErrors, methodNotAllowed, notFound } from '../server/fallbacks';
import { type ListeningHttpServer, startHttpServer } from '../server/http-server';
import { type HttpTimeouts, OPERATOR_LIMITS } from '../server/limits';
import type { OnHttpRejected } from '../server/rejections';
import type { TcpAddress } from '../../net/listen';
import { indexPage } from './index-page';
import { profilesOfProcess, routeProfiles } from './profiles/profiles';
import { type ReadRules, type RulesInfo, rlconfig } from './rlconfig';
import { type ReadStatistics, stats } from './stats';
import { type DebugWorkers, ofWorkers, workerList } from './workers';

export interface DebugServerOptions extends TcpAddress {
  /** The version of weir, for the index. */
  readonly version: string;
  readonly rules: ReadRules;
  readonly rulesInfo: () => RulesInfo;
  /** What `/healthcheck` answers. */
  readonly health: () => Health;
  /** What `/readyz` lists. */
  readonly checks: () => readonly Check[];
  readonly statistics: ReadStatistics;
  /** The other processes of this instance, if there are any. */
  readonly workers?: DebugWorkers | undefined;
  /** Handles `/api` and what is below it. */
  readonly operatorsApi: Middleware;
  /** The bytes that the process can still allocate; by default as Node reports them. */
  readonly availableMemory?: () => number;
  readonly onRejected: OnHttpRejected;
  readonly log: Log;
}

/** While a profile is recorded, nothing is sent for up to five minutes. A shutdown does not wait for it. */
const TIMEOUTS: HttpTimeouts = {
  headers: 10_000,
  request: 10_000,
  response: 300_000,
  keepAlive: 75_000,
  inactive: 400_000,
  grace: 500,
};

/**
 * Starts the debug server: an index, `/rlconfig`, `/stats`, `/healthcheck`, `/livez`, `/readyz`, `/debug/pprof/` and the
 * operators' API.
 *
 * @throws when it cannot listen, with a human-readable message
 */
export function serveDebug({
  version,
  rules,
  rulesInfo,
  health,
  checks,
  statistics,
  workers,
  operatorsApi,
  availableMemory = () => process.availableMemory(),
  onRejected,
  log,
  ...at
}: DebugServerOptions): Promise<ListeningHttpServer> {
  const own = profilesOfProcess(availableMemory);
  const profiles = workers === undefined ? own : own.map((profile) => ofWorkers(profile, workers));
  const pprof = {
    path: '/debug/pprof/',
    description: 'profiles of the running service',
    get: indexPage('weir: profiles', profiles),
  };
  const healthcheck = {
    path: '/healthcheck',
    description: 'whether the service can be called, from its start on',
    get: healthcheckRoute(health),
  };
  const readyz = {
    path: '/readyz',
    description: 'the same for readiness probes; with ?verbose, one line for each check',
    get: readyzRoute(checks),
  };
  const live = { path: '/livez', description: 'whether the process responds, for liveness probes', get: livez };
  const pages = [rlconfig(rulesInfo, rules), stats(statistics), healthcheck, readyz, live, pprof];
  if (workers !== undefined) pages.push(workerList(workers));
  const listed = [
    ...pages,
    { path: '/api/rules', description: "the active rules as a tree: one path of the operators' API" },
  ];
  const index = { path: '/', description: 'this index', get: indexPage(`weir ${version}: debug`, listed) };

  const router = new Router({ sensitive: true, strict: true });
  for (const { path, get } of [index, ...pages]) router.get(path, get).all(path, methodNotAllowed('GET, HEAD'));
  routeProfiles(router, profiles);
  router.get('/debug/pprof', (ctx) => ctx.redirect(pprof.path));

  const app = new Koa();
  app.on('error', logConnectionErrors(log));
  app
    .use(errorBoundary(log))
    .use(operatorsApi)
    .use(router.routes())
    .use(notFound([index, ...listed].map(({ path }) => path)));
  return startHttpServer(app, { at, timeouts: TIMEOUTS, limits: OPERATOR_LIMITS, onRejected, log });
}

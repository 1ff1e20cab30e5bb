import { Router } from '@koa/router';
import Koa from 'koa';
import type { Log } from '../../streams/ports/log';
import { cpuProfile } from './cpu-profile';
import { heapSnapshot } from './heap-snapshot';
import { indexPage } from './index-page';
import { type RulesAbout, rlconfig } from './rlconfig';
import { type Statistic, stats } from './stats';
import { errorBoundary } from '../server/error-boundary';
import type { ListenOptions } from '../server/listen';
import { logUnforeseen, methodNotAllowed, notFound } from '../server/fallbacks';
import { type HttpTimeouts, type Listening, serve } from '../server/serve';

export interface DebugOptions extends ListenOptions {
  /** Lines about the rules in force, in the order in which they are shown. */
  readonly rules: () => readonly string[];
  readonly about: () => RulesAbout;
  /** Every statistic as it stands, in any order. */
  readonly statistics: () => Iterable<Statistic>;
  readonly log: Log;
}

/** A CPU profile may take five minutes in which nothing is sent; nobody has to wait for one at the end. */
const TIMEOUTS: HttpTimeouts = { headers: 10_000, request: 10_000, keepAlive: 75_000, inactive: 400_000, grace: 500 };

/**
 * Opens the debug listener: an index, `/rlconfig`, `/stats` and `/debug/pprof/` (document 1, section 4).
 *
 * @throws when it cannot listen, with a sentence for the operator.
 */
export function serveDebug({ rules, about, statistics, log, ...at }: DebugOptions): Promise<Listening> {
  const profiles = [cpuProfile(), heapSnapshot()];
  const pprof = {
    path: '/debug/pprof/',
    about: 'profiles of the running service',
    get: indexPage('weir: profiles', profiles),
  };
  const pages = [rlconfig(about, rules), stats(statistics), pprof];
  const index = { path: '/', about: 'this index', get: indexPage('weir: debug', pages) };

  const router = new Router({ sensitive: true, strict: true });
  for (const { path, get } of [index, ...pages]) router.get(path, get).all(path, methodNotAllowed('GET, HEAD'));
  // A profile is made for its body alone: HEAD would make one for nothing.
  for (const { path, get } of profiles) {
    const refuse = methodNotAllowed('GET');
    router.head(path, refuse).get(path, get).all(path, refuse);
  }
  router.get('/debug/pprof', (ctx) => ctx.redirect(pprof.path));

  const app = new Koa();
  app.on('error', logUnforeseen(log));
  app
    .use(errorBoundary(log))
    .use(router.routes())
    .use(notFound([index, ...pages].map(({ path }) => path)));
  return serve(app, at, TIMEOUTS);
}

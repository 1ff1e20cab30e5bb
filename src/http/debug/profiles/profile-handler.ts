import { Router } from '@koa/router';
import Koa from 'koa';
import type { Log } from '../../../streams/ports/log';
import { errorBoundary } from '../../server/error-boundary';
import { logConnectionErrors, notFound } from '../../server/fallbacks';
import { profilesOfProcess, routeProfiles } from './profiles';

/** Handles the requests for profiles of this process that another process has received and forwards to it. */
export function profileHandler(log: Log): ReturnType<Koa['callback']> {
  const router = new Router({ sensitive: true, strict: true });
  routeProfiles(
    router,
    profilesOfProcess(() => process.availableMemory()),
  );
  const app = new Koa();
  app.on('error', logConnectionErrors(log));
  app.use(errorBoundary(log)).use(router.routes()).use(notFound([]));
  return app.callback();
}

import { type DeclaredRoute, api } from '#versioning';
import { Router } from '@koa/router';
import type { Middleware } from 'koa';
import type { Log } from '../../log/log';
import type { Operator } from '../../operators/operator';
import { BodyMemory } from '../body';
import type { Authorization } from './authorization';
import { CONTROLLERS, Explanations, type OperatorsState } from './controllers';
import { EventStreams } from './event-streams';
import { indentForBrowsers } from './indented';
import { problems } from './problems';

/** Bytes of unfinished bodies of all connections. */
const MAX_UNFINISHED_BYTES = 8 * 1024 * 1024;

export interface OperatorsApiOptions {
  readonly operator: Operator;
  readonly authorization: Authorization;
  readonly log: Log;
}

export interface OperatorsApi {
  /** Handles `/api` and everything below, and passes other requests on. */
  readonly middleware: Middleware;
  readonly routes: readonly DeclaredRoute[];
  /** Ends the streams, which would not end by themselves. */
  readonly close: () => void;
}

/** The API with which operators see and change what the service does. It belongs on a listener that callers cannot reach. */
export function operatorsApi({ operator, authorization, log }: OperatorsApiOptions): OperatorsApi {
  const router = new Router();
  const routes = api(
    router,
    {
      vendorString: 'weir',
      defaultVersion: 1,
      updateMethods: ['PUT', 'PATCH'],
      controllers: (name) => CONTROLLERS[name],
    },
    (it) => {
      it.version(1, () => {
        it.resources('configurations', { only: 'index' });
        it.resource('counters', { only: ['show', 'update', 'destroy'] });
        it.resource('events', { only: 'show' });
        it.resources('explanations', { only: 'create' });
        it.resource('health', { only: 'show' });
        it.resources('offenders', { only: 'index' });
        it.resource('openapi', { only: 'show' });
        it.resources('rules', { only: ['index', 'show'] });
        it.resource('settings', { only: 'show' });
        it.resource('statistics', { only: 'show' });
      });
    },
  );
  const streams = new EventStreams(operator, log);
  const state: OperatorsState = {
    operator,
    authorization,
    memory: new BodyMemory({ maxUnfinishedBytes: MAX_UNFINISHED_BYTES }),
    explanations: new Explanations(),
    streams,
    log,
  };
  const boundary = problems(log);
  const handle = router.routes();
  return {
    routes,
    close: () => streams.close(),
    middleware: (ctx, next) => {
      if (ctx.path !== '/api' && !ctx.path.startsWith('/api/')) return next();
      Object.assign(ctx.state, state);
      return boundary(ctx, async () => {
        await handle(ctx as never, () => Promise.resolve());
        if (ctx.respond !== false) indentForBrowsers(ctx);
      });
    },
  };
}

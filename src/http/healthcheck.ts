import type { Middleware } from 'koa';
import type { Health } from '../streams/readiness';

/** `GET /healthcheck`: 200 `OK`, or 500 with the unhealthy components. */
export function healthcheckRoute(health: () => Health): Middleware {
  return (ctx) => {
    const { healthy, unhealthy } = health();
    ctx.status = healthy ? 200 : 500;
    ctx.type = 'text/plain';
    ctx.body = healthy ? 'OK' : `unhealthy: ${unhealthy.join(', ')}`;
  };
}

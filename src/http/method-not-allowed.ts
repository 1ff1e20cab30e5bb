import type { Middleware } from 'koa';
import { Refusal } from './refusal';

/** Refuses every method that no route before it took. `allow` lists those that there are, as the header does. */
export function methodNotAllowed(allow: string): Middleware {
  return (ctx) => {
    throw new Refusal(405, 'method_not_allowed', `${ctx.method} is not allowed here; allowed: ${allow}`, {
      Allow: allow,
    });
  };
}

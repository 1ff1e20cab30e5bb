import type { Log } from '../../streams/ports/log';
import type { Middleware } from 'koa';
import { HttpError } from './errors';
import { asError } from '../../text/thrown';

/** Refuses what no route took. */
export function notFound(paths: readonly string[]): Middleware {
  return () => {
    throw new HttpError(404, 'not_found', `there is nothing here; there is ${paths.join(', ')}`);
  };
}

/** Refuses every method that no route before it took. `allow` lists those that there are, as the header does. */
export function methodNotAllowed(allow: string): Middleware {
  return (ctx) => {
    throw new HttpError(405, 'method_not_allowed', `${ctx.method} is not allowed here; allowed: ${allow}`, {
      Allow: allow,
    });
  };
}

/** What Koa reports beside the answers: connections that broke while being answered, which is the callers' right. */
export function logUnforeseen(log: Log): (error: unknown) => void {
  return (error) => {
    log.debug('an HTTP connection broke', { error: asError(error) });
  };
}

import type { Middleware } from 'koa';
import type { Log } from '../../streams/ports/log';
import { asError } from '../../text/thrown';
import { HttpError } from './errors';

/** Rejects every request that no route has handled. */
export function notFound(paths: readonly string[]): Middleware {
  const message = `no such path; available: ${paths.join(', ')}`;
  return () => {
    throw new HttpError({ status: 404, code: 'not_found', message });
  };
}

/**
 * Rejects every method that no earlier route has handled.
 *
 * @param allow the methods of the path, as in the Allow header
 */
export function methodNotAllowed(allow: string): Middleware {
  return ({ method }) => {
    const message = `${method} is not allowed here; allowed: ${allow}`;
    throw new HttpError({ status: 405, code: 'method_not_allowed', message, headers: { Allow: allow } });
  };
}

/** Logs the errors that Koa reports outside of a response: connections that failed while a response was being sent. */
export function logConnectionErrors(log: Log): (error: unknown) => void {
  return (error) => {
    log.debug('an HTTP connection failed while a response was being sent', { error: asError(error) });
  };
}

import { STATUS_CODES } from 'node:http';
import type { Context, Middleware } from 'koa';
import type { Log } from '../../log/log';
import { type ErrorFormat, HttpError, errorBoundary, methodNotAllowed } from '../errors';

/** An error of the API (RFC 9457), which has the members `title`, `status`, `code`, `detail` and those of its kind. */
const PROBLEM: ErrorFormat = {
  type: 'application/problem+json',
  bodyOf: ({ status, code, message, members }) =>
    JSON.stringify({ title: STATUS_CODES[status] ?? 'Error', status, code, detail: message, ...members }),
};

/**
 * Answers every error of the inner middleware with a problem; an unexpected error is logged and answered without its
 * message.
 */
export function problems(log: Log): Middleware {
  const boundary = errorBoundary(log, PROBLEM);
  return (ctx, next) =>
    boundary(ctx, async () => {
      ctx.vary('Accept');
      await next();
      if (ctx.status >= 400 && ctx.respond !== false) throw fromRouting(ctx);
    });
}

/** The error that route versioning has answered. */
function fromRouting({ status, method, path, response, body }: Context): HttpError {
  if (status === 405) return methodNotAllowed(method, response.get('Allow'));
  if (status === 406) {
    const { code, message, ...members } = Object(Object(body).error) as { code: string; message: string };
    return new HttpError({ status, code, message, members });
  }
  return new HttpError({
    status,
    code: 'not_found',
    message: `the API has no ${path}; /api/openapi.json describes it`,
  });
}

import { STATUS_CODES } from 'node:http';
import type { Context, Middleware } from 'koa';
import type { Log } from '../../streams/ports/log';
import { responseTo } from '../server/error-boundary';
import { CallerDisconnected, type ErrorResponse, HttpError } from '../server/errors';

/** An error of the API (RFC 9457), in addition to the members of {@link ProblemDetails} with those of its kind. */
export type Problem = ProblemDetails & Readonly<Record<string, unknown>>;

export interface ProblemDetails {
  /** The text of the status. */
  readonly title: string;
  readonly status: number;
  /** Machine-readable: lower-case letters and `_`. */
  readonly code: string;
  /** Human-readable: one sentence. */
  readonly detail: string;
}

export const PROBLEM_TYPE = 'application/problem+json';

export function problem({ status, code, message }: ErrorResponse): Problem {
  return { title: STATUS_CODES[status] ?? 'Error', status, code, detail: message };
}

/** An error with further members. */
export class ProblemError extends HttpError {
  readonly members: Readonly<Record<string, unknown>>;

  constructor(response: ErrorResponse, members: Readonly<Record<string, unknown>>) {
    super(response);
    this.members = members;
  }
}

/** Answers every error of the inner middleware with a problem; an unexpected error is logged and answered without its message. */
export function problems(log: Log): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      if (error instanceof CallerDisconnected) return;
      const response = responseTo(error, log);
      ctx.set(response.headers ?? {});
      respond(ctx, { ...problem(response), ...(error instanceof ProblemError && error.members) });
      return;
    }
    if (ctx.status >= 400 && ctx.respond !== false && ctx.type !== PROBLEM_TYPE) respond(ctx, fromRouting(ctx));
  };
}

function respond(ctx: Context, body: Problem): void {
  ctx.status = body.status;
  ctx.vary('Accept');
  ctx.body = JSON.stringify(body);
  ctx.set('Content-Type', PROBLEM_TYPE);
}

/** What route versioning has answered. */
function fromRouting(ctx: Context): Problem {
  const { status, method, path, response } = ctx;
  if (status === 406) {
    const { code, message, ...members } = Object(Object(ctx.body).error) as { code: string; message: string };
    return { ...problem({ status, code, message }), ...members };
  }
  if (status === 405) {
    const message = `${method} is not allowed here; allowed: ${response.get('Allow')}`;
    return problem({ status, code: 'method_not_allowed', message });
  }
  return problem({ status, code: 'not_found', message: `the API has no ${path}; /api/openapi.json describes it` });
}

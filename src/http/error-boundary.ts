import type { Context, Middleware } from 'koa';
import { DecisionError } from '../limiter/decision-error';
import type { Log } from '../streams/log';
import { CallerGone } from './caller-gone';
import { DECISION_STATUS } from './decision-status';
import { MalformedBody } from './json/malformed-body';
import { Refusal } from './refusal';

/**
 * Turns every failure below into its answer: `{"error":{"code":"…","message":"…"}}`. A failure that nobody foresaw is
 * logged and answered without its message, which is not the caller's business.
 */
export function errorBoundary(log: Log): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      if (error instanceof CallerGone) return;
      answer(ctx, asRefusal(error, log));
    }
  };
}

export function errorBody(code: string, message: string): string {
  return JSON.stringify({ error: { code, message } });
}

function asRefusal(error: unknown, log: Log): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof DecisionError) return new Refusal(DECISION_STATUS[error.code], error.code, error.message);
  if (error instanceof MalformedBody) return new Refusal(400, 'invalid_request', error.message);
  log.error('an HTTP request failed', { error: error instanceof Error ? error : new Error(String(error)) });
  return new Refusal(500, 'internal_error', 'the service failed to answer; its log says why');
}

function answer(ctx: Context, { status, code, message, headers }: Refusal): void {
  ctx.status = status;
  ctx.set(headers);
  ctx.set('Content-Type', 'application/json');
  ctx.body = errorBody(code, message);
}

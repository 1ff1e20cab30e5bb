import type { Context, Middleware, Next } from 'koa';
import { mediaTypes } from '../accept/choose-version';
import type { RoutedPath } from '../routes/routed-path';
import type { ApiBlock } from '../routes/versioned-path';
import { type RoutedContext, otherLayers, ownResolution } from './own-resolution';
import { runAction } from './run-action';

/**
 * The handler of one versioned path. When several paths match a request, each of their handlers is called in turn until the one
 * that the version selects has answered; the others call `next`.
 */
export function answer(own: RoutedPath): Middleware {
  return function answerVersioned(context: Context, next: Next): Promise<unknown> | void {
    const ctx = context as RoutedContext;
    ctx.vary('Accept');
    const resolution = ownResolution(ctx, own);
    if (resolution === undefined) return next();
    if (resolution.kind === 'action') return runAction(ctx, next, resolution);
    if (resolution.kind === 'no version') {
      ctx.status = 406;
      ctx.body = notAcceptable(resolution.blocks);
      return;
    }
    const others = otherLayers(ctx);
    if (resolution.kind === 'no path') {
      // What allowedMethods reads must not have a path that this version does not have.
      ctx.matched = others;
      ctx.status = 404;
      return;
    }
    ctx.status = ctx.method === 'OPTIONS' ? 200 : 405;
    if (ctx.method === 'OPTIONS') ctx.body = '';
    ctx.set('Allow', [...new Set([...resolution.methods, ...others.flatMap(({ methods }) => methods)])].join(', '));
  };
}

/** The body of an answer with status 406. */
function notAcceptable(blocks: readonly ApiBlock[]): object {
  return {
    error: {
      code: 'version_not_acceptable',
      message: 'the Accept header names no version of this API',
      versions: [...new Set(blocks.flatMap(({ versions }) => versions))],
      types: blocks.flatMap(mediaTypes),
    },
  };
}

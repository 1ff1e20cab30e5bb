import type { Context, Middleware, Next } from 'koa';
import { type RoutedPath, routedPath } from '../routes/routed-path';
import type { RouterLayer } from '../routes/router';
import { mediaTypes } from '../accept/choose-version';
import type { ApiBlock } from '../routes/versioned-path';
import { resolve } from './resolve';
import { runAction } from './run-action';

/** What the router adds to a context. */
interface RoutedContext extends Context {
  /** All layers that match the path, in order. */
  matched?: RouterLayer[];
}

/**
 * The handler of one versioned path. When several paths match a request, each of their handlers is called in turn until the one
 * that the version selects has answered; the others call `next`.
 */
export function answer(own: RoutedPath): Middleware {
  return function answerVersioned(context: Context, next: Next): Promise<unknown> | void {
    const ctx = context as RoutedContext;
    const layers = ctx.matched ?? [];
    ctx.vary('Accept');
    const resolution = resolve(ctx, layers);
    if (resolution.kind === 'action') {
      return resolution.routed.path === own.path ? runAction(ctx, next, resolution) : next();
    }
    // A route that is not versioned may follow for the same path, such as POST /api/foo/import beside /api/foo/:id.
    const others = layers.filter((layer) => routedPath(layer) === undefined);
    const later = layers.slice(layers.findIndex((layer) => routedPath(layer)?.path === own.path));
    if (later.some((layer) => others.includes(layer) && layer.methods.includes(ctx.method))) return next();

    if (resolution.kind === 'no version') {
      ctx.status = 406;
      ctx.body = notAcceptable(resolution.blocks);
      return;
    }
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

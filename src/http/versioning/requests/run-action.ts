import type { Context, Next } from 'koa';
import { mediaType } from '../accept/choose-version';
import type { ActionMethod } from '../controllers/controller-class';
import { routedPath } from '../routes/routed-path';
import type { RouterLayer } from '../routes/router';
import { isParameter } from '../routes/versioned-path';
import { restoreDots } from './requested-format';
import type { Resolution } from './resolve';

/**
 * Answers a request with an action: on a new instance of the controller, with the version in `ctx.state.apiVersion`. What the
 * action returns becomes the body if it has set none. A JSON answer gets the vendor's media type with the version.
 */
export async function runAction(
  ctx: Context,
  next: Next,
  { routed, version, target }: Resolution & { kind: 'action' },
): Promise<void> {
  const { block, path } = routed;
  removeOtherParams(ctx, path.segments);
  restoreDots(ctx.params, path, block.formats);
  ctx.state.apiVersion = version;
  try {
    const { controller: Controller, action } = target;
    const instance = new Controller(ctx) as Readonly<Record<string, ActionMethod>>;
    const result = await instance[action]!(ctx, next);
    if (result !== undefined && (ctx.body === undefined || ctx.body === null)) ctx.body = result;
  } catch (error) {
    throw varying(error);
  }
  if (!ctx.headerSent && ctx.type === 'application/json') ctx.set('Content-Type', mediaType(block.vendor, version));
}

/** Removes parameters of paths that match too but were not selected; the router keeps them. */
function removeOtherParams(ctx: Context, segments: readonly string[]): void {
  const layers: readonly RouterLayer[] = ctx.matched;
  for (const layer of layers) {
    for (const segment of routedPath(layer)?.path.segments ?? []) {
      if (isParameter(segment) && !segments.includes(segment)) delete ctx.params[segment.slice(1)];
    }
  }
}

/** An error with `Vary`: Koa removes the headers of the response when it answers with an error, and takes those of the error. */
function varying(error: unknown): unknown {
  if (!(error instanceof Error) || !Object.isExtensible(error)) return error;
  const { headers } = error as Error & { headers?: Readonly<Record<string, string>> };
  if (Object.keys(headers ?? {}).some((name) => name.toLowerCase() === 'vary')) return error;
  return Object.assign(error, { headers: { ...headers, Vary: 'Accept' } });
}

import type { Context, Next } from 'koa';
import { mediaType } from '../accept/choose-version';
import type { ActionMethod } from '../controllers/controller-class';
import { routedPath } from '../routes/routed-path';
import type { RouterLayer } from '../routes/router';
import type { VersionedPath } from '../routes/versioned-path';
import type { Resolution } from './resolve';
import { varyingByAccept } from './vary';

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
  removeOtherParams(ctx, path);
  ctx.state.apiVersion = version;
  try {
    const { controller: Controller, action } = target;
    const instance = new Controller(ctx) as Readonly<Record<string, ActionMethod>>;
    const result = await instance[action]!(ctx, next);
    if (result !== undefined && (ctx.body === undefined || ctx.body === null)) ctx.body = result;
  } catch (error) {
    throw varyingByAccept(error);
  }
  if (!ctx.headerSent && ctx.type === 'application/json') ctx.set('Content-Type', mediaType(block.vendor, version));
}

/** Removes parameters of paths that match too but were not selected; the router keeps them. */
function removeOtherParams(ctx: Context, selected: VersionedPath): void {
  const layers = (ctx.matched as readonly RouterLayer[]).filter((layer) => routedPath(layer) !== undefined);
  const own = namesOf(layers.find((layer) => routedPath(layer)?.path === selected));
  for (const name of layers.flatMap(namesOf)) {
    if (!own.includes(name)) delete ctx.params[name];
  }
}

function namesOf(layer: RouterLayer | undefined): readonly string[] {
  return layer?.paramNames.map(({ name }) => name) ?? [];
}

import type { Next } from 'koa';
import type { RoutedPath } from '../routes/routed-path';
import type { RouterLayer, VersionedRouter } from '../routes/router';
import { removeOtherParams } from './own-params';
import { type RoutedContext, otherLayers, ownResolution } from './own-resolution';
import { keepVary } from './vary';

/** What `router.param()` is called with. */
type ParamHandler = (value: string, ctx: RoutedContext, next: Next) => unknown;

interface GuardedLayer extends RouterLayer {
  stack: unknown[];
  param: (this: GuardedLayer, name: string, handler: ParamHandler) => unknown;
}

/**
 * Lets the handlers of `router.param()` run in the layer that answers a request, and in no other versioned layer. The router calls
 * a handler once for a request, in the first layer that matches and has the parameter; but the version may select another one,
 * which may read another value from the same path: with other formats, or at another place of the path.
 *
 * @param registered the handlers that the router has already; it passes later ones to the layer
 */
export function guardParamHandlers(layer: RouterLayer, own: RoutedPath, registered: VersionedRouter['params']): void {
  const guarded = layer as GuardedLayer;
  const { param } = guarded;
  const guards = new Guards(own);
  // Its own property: when a router is nested in another, the copy of the layer gets it too, and with it the outer handlers.
  guarded.param = function guardedParam(name, handler) {
    return param.call(this, name, guards.of(name, handler));
  };
  // The router has put those before the layer's own handler, without a guard.
  guarded.stack.splice(0, guarded.stack.length - 1);
  for (const [name, handlers] of Object.entries(registered)) {
    for (const handler of [handlers].flat() as ParamHandler[]) guarded.param(name, handler);
  }
}

/**
 * The guards of one layer and its copies. Each handler has one for a parameter, so that the router calls it once where it is
 * registered twice, on a router and on the one that is nested in it; but for each parameter where it is registered for several.
 */
class Guards {
  readonly #own: RoutedPath;
  readonly #byName = new Map<string, WeakMap<ParamHandler, ParamHandler>>();

  constructor(own: RoutedPath) {
    this.#own = own;
  }

  of(name: string, handler: ParamHandler): ParamHandler {
    let guards = this.#byName.get(name);
    if (guards === undefined) this.#byName.set(name, (guards = new WeakMap()));
    let guard = guards.get(handler);
    if (guard === undefined) guards.set(handler, (guard = guardOf(handler, this.#own)));
    return guard;
  }
}

function guardOf(handler: ParamHandler, own: RoutedPath): ParamHandler {
  return async function guardedHandler(value, ctx, next) {
    ctx.vary('Accept');
    const resolution = ownResolution(ctx, own);
    if (resolution === undefined || hasChecked(ctx, handler, value)) return next();
    if (resolution.kind === 'action') removeOtherParams(ctx, own);
    try {
      return await handler(value, ctx, next);
    } catch (error) {
      keepVary(ctx, error);
      throw error;
    }
  };
}

/** What the router keeps of the handlers that it has called, and of how a layer calls them. */
interface CallingContext extends RoutedContext {
  readonly _matchedParams?: WeakMap<ParamHandler, unknown>;
}
interface CallingLayer extends RouterLayer {
  readonly stack: readonly { readonly param?: string; readonly _originalFn?: ParamHandler }[];
  captures(path: string): string[];
  params(path: string, captures: string[]): Readonly<Record<string, string | undefined>>;
}

/**
 * Whether the router has called a handler with the value before, for a layer that is not versioned, such as middleware of
 * `router.use('/api/foo/:id', …)`. That must not count where the layer has read another value, because it knows no formats.
 */
function hasChecked(ctx: CallingContext, handler: ParamHandler, value: string): boolean {
  const { _matchedParams: called } = ctx;
  if (called?.has(handler) !== true) return false;
  const values = (otherLayers(ctx) as CallingLayer[]).flatMap((layer) => {
    const params = layer.params(ctx.path, layer.captures(ctx.path));
    return layer.stack.flatMap(({ param, _originalFn }) => (_originalFn === handler ? [params[param!]] : []));
  });
  return values.length > 0 && values.every((each) => each === value);
}

import type { Context } from 'koa';
import { type RoutedPath, routedPath } from '../routes/routed-path';
import type { RouterLayer } from '../routes/router';
import { type Resolution, resolve } from './resolve';

/** What the router adds to a context. */
export interface RoutedContext extends Context {
  /** All layers that match the path, in order; further routers add theirs to the same list. */
  matched?: RouterLayer[];
}

interface Resolved {
  readonly layers: readonly RouterLayer[];
  readonly count: number;
  readonly resolution: Resolution;
}

const resolvedBefore = new WeakMap<Context, Resolved>();

/**
 * What the layer of a path has to do with a request; undefined when it leaves the request to a later layer. The handlers of its
 * parameters and its own handler get the same answer, so that no value reaches an action for which other handlers have run.
 */
export function ownResolution(ctx: RoutedContext, own: RoutedPath): Resolution | undefined {
  const resolution = resolveOnce(ctx);
  if (resolution.kind === 'action') return resolution.routed.path === own.path ? resolution : undefined;
  return isLeftToOthers(ctx, own) ? undefined : resolution;
}

/** The layers that match a request and are not versioned. */
export function otherLayers({ matched = [] }: RoutedContext): RouterLayer[] {
  return matched.filter((layer) => routedPath(layer) === undefined);
}

function resolveOnce(ctx: RoutedContext): Resolution {
  const layers = ctx.matched ?? [];
  const before = resolvedBefore.get(ctx);
  if (before?.layers === layers && before.count === layers.length) return before.resolution;
  const resolution = resolve(ctx, layers);
  resolvedBefore.set(ctx, { layers, count: layers.length, resolution });
  return resolution;
}

/** A route that is not versioned may follow for the same path, such as POST /api/foo/import beside /api/foo/:id. */
function isLeftToOthers(ctx: RoutedContext, { path }: RoutedPath): boolean {
  const { matched = [] } = ctx;
  const later = matched.slice(matched.findIndex((layer) => routedPath(layer)?.path === path));
  return later.some((layer) => routedPath(layer) === undefined && layer.methods.includes(ctx.method));
}

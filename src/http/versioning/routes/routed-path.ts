import type { RouterLayer } from './router';
import type { ApiBlock, VersionedPath } from './versioned-path';

/** A path with the block that declared it. */
export interface RoutedPath {
  readonly block: ApiBlock;
  readonly path: VersionedPath;
}

/**
 * By handler, because a router that is nested in another is copied with all its layers, and only the handlers stay the same.
 */
const byHandler = new WeakMap<object, RoutedPath>();

export function markHandler(handler: object, routed: RoutedPath): void {
  byHandler.set(handler, routed);
}

/** The versioned path of a layer; undefined for any other layer. */
export function routedPath({ stack }: RouterLayer): RoutedPath | undefined {
  // The handlers of parameters come first.
  const handler = stack.at(-1);
  return typeof handler === 'function' ? byHandler.get(handler) : undefined;
}

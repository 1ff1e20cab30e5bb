import type { Context } from 'koa';
import { chooseVersion } from '../accept/choose-version';
import { type RoutedPath, routedPath } from '../routes/routed-path';
import type { RouterLayer } from '../routes/router';
import type { ApiBlock, RouteTarget } from '../routes/versioned-path';
import { hasUnknownFormat } from './requested-format';

/** What a request to the paths of one or more `api` blocks gets. */
export type Resolution =
  /** An action of a version. */
  | { readonly kind: 'action'; readonly routed: RoutedPath; readonly version: number; readonly target: RouteTarget }
  /** The version has the path, with other methods. */
  | { readonly kind: 'other method'; readonly methods: readonly string[] }
  /** The version does not have the path. */
  | { readonly kind: 'no path' }
  /** The client accepts none of the versions. */
  | { readonly kind: 'no version'; readonly blocks: readonly ApiBlock[] };

/**
 * Resolves a request among all layers that match its path. Blocks are tried in the order of their declaration: a client that
 * names one vendor reaches that vendor's block, whatever other blocks have the same path.
 *
 * @param layers all layers that match, with those that are not versioned
 */
export function resolve(ctx: Context, layers: readonly RouterLayer[]): Resolution {
  const byBlock = new Map<ApiBlock, RoutedPath[]>();
  for (const layer of layers) {
    const routed = routedPath(layer);
    if (routed === undefined) continue;
    const { block, path } = routed;
    const paths = byBlock.get(block);
    // Registered also where the format is unknown, because the version decides first.
    const isKnown = !hasUnknownFormat(path, block.formats, ctx.path);
    if (paths === undefined) byBlock.set(block, isKnown ? [routed] : []);
    else if (isKnown) paths.push(routed);
  }
  const accept = ctx.get('Accept');
  const methods = new Set<string>();
  let isAccepted = false;
  for (const [block, paths] of byBlock) {
    const version = chooseVersion(accept, block);
    if (version === undefined) continue;
    isAccepted = true;
    for (const routed of paths) {
      const target = routed.path.target(version, ctx.method);
      if (target !== undefined) return { kind: 'action', routed, version, target };
      for (const method of routed.path.methods(version)) methods.add(method);
    }
  }
  if (methods.size > 0) return { kind: 'other method', methods: [...methods] };
  if (isAccepted) return { kind: 'no path' };
  return { kind: 'no version', blocks: [...byBlock.keys()] };
}

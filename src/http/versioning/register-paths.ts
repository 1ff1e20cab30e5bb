import { DeclarationError } from './routes/declaration-error';
import { answer } from './requests/answer';
import { matchQuickly } from './routes/quick-match';
import { guardParamHandlers } from './requests/param-handlers';
import { readWholeParams } from './routes/whole-params';
import { type RoutedPath, markHandler, routedPath } from './routes/routed-path';
import type { RouterLayer, VersionedRouter } from './routes/router';
import type { ApiBlock, VersionedPath } from './routes/versioned-path';

/** What is declared: the paths of one `api` block, in the order in which they must be matched. */
export interface DeclaredPaths {
  readonly block: ApiBlock;
  readonly paths: readonly VersionedPath[];
}

/**
 * Registers each path once, for all methods and versions: the router compares a request with every registered path, so that one
 * for each version would multiply the cost.
 *
 * @throws {DeclarationError} when a path collides with one of another block on the same router; then nothing is registered
 */
export function registerPaths(router: VersionedRouter, { block, paths }: DeclaredPaths): void {
  for (const path of paths) checkOtherBlocks(router, { block, path });
  // The router adds HEAD to GET.
  const methods = router.methods.filter((method) => method !== 'HEAD');
  for (const path of paths) {
    const routed = { block, path };
    const handler = answer(routed);
    markHandler(handler, routed);
    const options = { ...block.routeOptions, name: path.name };
    const layer = router.register(path.pattern, methods, handler, options) as RouterLayer;
    readWholeParams(layer, routed);
    guardParamHandlers(layer, routed, router.params);
    if (block.routeOptions.sensitive) matchQuickly(layer);
  }
}

function checkOtherBlocks(router: VersionedRouter, declared: RoutedPath): void {
  const { block, path } = declared;
  for (const layer of router.stack) {
    const other = routedPath(layer);
    if (layer.name === path.name && other?.path.pattern !== path.pattern) {
      throw new DeclarationError(
        [],
        `the router already has a route named '${path.name}', with the path ${String(layer.path)}; ` +
          'give this API another namespace',
      );
    }
    if (other === undefined || other.block.vendor !== block.vendor || other.path.shape !== path.shape) continue;
    for (const { version, method } of path.routes()) {
      if (other.path.target(version, method) === undefined) continue;
      throw new DeclarationError(
        [`version ${version}`],
        `another api block of the vendor '${block.vendor}' already has ${method} ${other.path.pattern} in version ${version}`,
      );
    }
  }
}

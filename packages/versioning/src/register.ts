import type { Middleware, Next } from 'koa';
import { type ApiBlock, REST, dispatcher, registered } from './dispatch';
import { DeclarationError } from './errors';
import type { VersionedPath } from './paths';
import { type RouterLayer, type VersionedRouter, routerOption } from './router';

/** @throws {DeclarationError} when the router cannot have versioned routes */
export function checkRouter(router: VersionedRouter): void {
  if (typeof router?.register !== 'function' || !Array.isArray(router.stack)) {
    throw new DeclarationError([], 'the first argument must be an @koa/router instance');
  }
  if (routerOption(router, 'exclusive')) {
    throw new DeclarationError(
      [],
      'the router has the option exclusive, with which it runs the last matching route, whatever the version; ' +
        'give the API a router of its own',
    );
  }
}

/**
 * Registers one layer that dispatches all requests of a block, and behind it one for each path. Those match no request,
 * because the router compares a request with every layer: they have the names for `router.url` and the handlers of
 * `router.param()`.
 *
 * @param options for the router
 * @throws {DeclarationError} when a path collides with one of another block on the same router; then nothing is
 * registered
 */
export function registerBlock(router: VersionedRouter, block: ApiBlock, options: object): void {
  for (const layer of router.stack as readonly RouterLayer[]) checkCollision(layer, block);
  const head = ['', ...block.prefix, ''].join('/');
  // The router adds HEAD to GET.
  const methods = router.methods.filter((method) => method !== 'HEAD');
  let optionalFormat = '{.:format}';
  try {
    router.register(`${head}*${REST}`, methods, dispatcher(block), options);
  } catch {
    // Versions 12 and 13 have another syntax of paths, and throw before they add anything.
    router.register(`${head}:${REST}(.*)`, methods, dispatcher(block), options);
    optionalFormat = '{.:format}?';
  }
  for (const path of block.tree.paths) {
    const named = { ...options, name: path.name };
    const layer = router.register(path.pattern + optionalFormat, [], markerOf(block, path), named);
    // Its own property: the copy of the layer in an enclosing router has it, too.
    Object.assign(layer as RouterLayer, { match: () => false });
  }
}

/** A handler that is never called, of which the block and the path are known. */
function markerOf(block: ApiBlock, path: VersionedPath): Middleware {
  function marker(_ctx: unknown, next: Next): Promise<unknown> {
    return next();
  }
  registered.set(marker, { block, path });
  return marker;
}

function checkCollision({ name, path, stack }: RouterLayer, { vendor, host, tree }: ApiBlock): void {
  const other = registered.get(stack.at(-1)!);
  const own = tree.paths.find((each) => each.name !== '' && each.name === name);
  if (own !== undefined && own.pattern !== other?.path.pattern) {
    throw new DeclarationError(
      [],
      `the router already has a route named '${name}', with the path ${String(path)}; give this API another namespace`,
    );
  }
  if (other === undefined || other.block.vendor !== vendor || String(other.block.host) !== String(host)) return;
  for (const { version, method, path: taken } of other.path.routes()) {
    if (tree.rival(other.path.segments, version, method) === undefined) continue;
    throw new DeclarationError(
      [`version ${version}`],
      `another api block of the vendor '${vendor}' already has ${method} ${taken} in version ${version}`,
    );
  }
}

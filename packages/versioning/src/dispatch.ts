import type { Context, Middleware, Next } from 'koa';
import { type Offer, choose } from './accept';
import { answerMissed, keepVary, runAction } from './answers';
import type { Match, PathTree, VersionedPath } from './paths';
import type { RoutedContext, RouterLayer } from './router';

/** What one `api` block declares. */
export interface ApiBlock extends Offer {
  /** The segments that all paths begin with. */
  readonly prefix: readonly string[];
  /** Undefined: all hosts. */
  readonly host: string | RegExp | undefined;
  readonly tree: PathTree;
}

/**
 * The blocks and paths of layers, by handler: a router that is nested in another is copied, and only the handlers stay
 * the same.
 */
export const registered = new WeakMap<object, { readonly block: ApiBlock; readonly path: VersionedPath }>();

/** The parameter of the dispatcher's layer that takes what follows the prefix. */
export const REST = 'versionedPath';

/**
 * The handler of all requests below the prefix of a block, which the router has compared. It passes on what the block
 * does not answer. When nothing behind it answers either, the answer is 405 or 406.
 */
export function dispatcher(block: ApiBlock): Middleware {
  const layersOf = new WeakMap<RouterLayer, ReadonlyMap<VersionedPath, RouterLayer>>();
  const isServed = hostTest(block.host);
  return async function dispatch(context: Context, next: Next): Promise<unknown> {
    const ctx = context as RoutedContext;
    const own = ctx.matched.find(({ stack }) => stack.at(-1) === dispatch)!;
    // Found by name, because an optional part of a router's prefix repeats the parameters before it.
    const rest = ctx.captures.find((value, at) => value !== undefined && own.paramNames[at]?.name === REST) ?? '';
    delete ctx.params[REST];
    const matches = isServed(ctx) ? block.tree.find(rest.split('/')) : [];
    if (matches.length === 0) {
      replaceOwn(ctx, own, []);
      return next();
    }
    ctx.vary('Accept');
    try {
      const choice = choose(ctx.get('Accept'), block);
      const match = choice && matches.find(({ path }) => path.target(choice.version, ctx.method) !== undefined);
      if (choice !== undefined && match !== undefined) {
        const target = match.path.target(choice.version, ctx.method)!;
        let layers = layersOf.get(own);
        if (layers === undefined) layersOf.set(own, (layers = pathLayers(ctx.router.stack, own)));
        const layer = layers.get(match.path)!;
        return await runLayer(ctx, layer, match, () => runAction(ctx, next, { target, choice, offer: block }));
      }
      const methods = choice && matches.flatMap(({ path }) => path.methods(choice.version));
      replaceOwn(ctx, own, methods ?? []);
      return await answerMissed(ctx, next, { offer: block, methods });
    } catch (error) {
      keepVary(error);
      throw error;
    }
  };
}

function hostTest(host: string | RegExp | undefined): (ctx: Context) => boolean {
  if (host === undefined) return () => true;
  const served = typeof host === 'string' ? host.toLowerCase() : host;
  function isServed(name: string): boolean {
    // Not `test`, which continues behind the last match of an expression with the flag g.
    return typeof served === 'string' ? name.toLowerCase() === served : name.search(served) !== -1;
  }
  return ({ host: withPort, hostname }) => isServed(withPort) || isServed(hostname);
}

/**
 * The layers of paths behind that of a dispatcher: an enclosing router has copies of all, and a copy for each place
 * where it nests them.
 */
function pathLayers(stack: readonly RouterLayer[], dispatching: RouterLayer): ReadonlyMap<VersionedPath, RouterLayer> {
  const layers = new Map<VersionedPath, RouterLayer>();
  for (const layer of stack.slice(stack.indexOf(dispatching))) {
    const path = registered.get(layer.stack.at(-1)!)?.path;
    if (path !== undefined && !layers.has(path)) layers.set(path, layer);
  }
  return layers;
}

/** Lets `allowedMethods` see the methods of the chosen version instead of all. */
function replaceOwn(ctx: RoutedContext, own: RouterLayer, methods: readonly string[]): void {
  const replacement = methods.length === 0 ? [] : [{ ...own, stack: [], methods }];
  ctx.matched = ctx.matched.flatMap((layer) => (layer === own ? replacement : [layer]));
}

/**
 * Does for the layer of a path what the router does for that of a route: sets the context and runs the handlers of its
 * parameters.
 */
function runLayer(ctx: RoutedContext, { path, name, stack }: RouterLayer, { params }: Match, action: Next) {
  const all = { ...ctx.params, ...params };
  Object.assign(ctx.request, { params: all });
  Object.assign(ctx, {
    params: all,
    routerPath: path,
    routerName: name,
    _matchedRoute: path,
    _matchedRouteName: name,
    // Version 15 calls no handler twice; but this one may have had another value, for middleware or a prefix.
    _matchedParams: undefined,
  });
  const handlers = stack.filter(({ param }) => param !== undefined && Object.hasOwn(params, param));
  // oxlint-disable-next-line unicorn/no-array-reduce -- from the last to the first, each with the next one
  const first = handlers.reduceRight<Next>((next, handler) => () => Promise.resolve(handler(ctx, next)), action);
  return first();
}

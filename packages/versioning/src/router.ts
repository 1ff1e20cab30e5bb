import type { Context, Middleware } from 'koa';

/**
 * What is used of an @koa/router instance, versions 12 to 15. Not a class, because an application may have several of
 * them: `require` and `import` load different ones.
 */
export interface VersionedRouter {
  readonly methods: readonly string[];
  readonly stack: readonly { readonly path: string | RegExp; readonly stack: readonly unknown[] }[];
  /** Returns the layer, as the path is one. */
  register(path: string, methods: string[], middleware: Middleware, options?: object): unknown;
}

/** What a router has registered for a path, with what the types of some of its versions lack. */
export interface RouterLayer {
  readonly name: string | undefined;
  readonly path: string | RegExp;
  readonly methods: readonly string[];
  /** The parameters of the path, those of prefixes included. */
  readonly paramNames: readonly { readonly name: string | number }[];
  /** The handlers of `router.param()`, which have a parameter, and then that of the path. */
  readonly stack: readonly (Middleware & { readonly param?: string })[];
}

/** What a router adds to a context. */
export interface RoutedContext extends Context {
  readonly router: { readonly stack: readonly RouterLayer[] };
  /** All layers that match the path, in order; further routers add theirs to the same list. */
  matched: RouterLayer[];
  /** What the parameters have matched, not decoded. */
  readonly captures: readonly (string | undefined)[];
}

/** An option of a router, which the types of some versions do not declare. */
export function routerOption(router: VersionedRouter, name: 'sensitive' | 'strict' | 'exclusive'): boolean {
  return Boolean(Object(Reflect.get(router, 'opts'))[name]);
}

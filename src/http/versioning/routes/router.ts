import type { Middleware } from 'koa';
import { DeclarationError } from './declaration-error';

/** What a router has registered for a path. */
export interface RouterLayer {
  readonly name?: string | symbol | undefined;
  readonly path: string | RegExp;
  readonly methods: readonly string[];
  /** The parameters of the path, those of prefixes included. */
  readonly paramNames: readonly { readonly name: string }[];
  readonly stack: readonly unknown[];
}

/**
 * What is used of an @koa/router instance. Not the class itself, because an application may have two of them: `require` and
 * `import` load different ones.
 */
export interface VersionedRouter {
  readonly methods: readonly string[];
  readonly exclusive: boolean;
  readonly stack: readonly RouterLayer[];
  /** The handlers of `router.param()`, by parameter: one, or a list. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Returns the layer, as the path is one. */
  register(path: string, methods: string[], middleware: Middleware, options?: object): unknown;
}

/** @throws {DeclarationError} when the router cannot have versioned routes */
export function checkRouter(router: VersionedRouter): void {
  if (typeof router?.register !== 'function' || !Array.isArray(router.stack)) {
    throw new DeclarationError([], 'the first argument must be an @koa/router instance');
  }
  if (router.exclusive) {
    throw new DeclarationError(
      [],
      'the router has the option exclusive, with which it runs the last matching route, whatever the version; ' +
        'give the API a router of its own',
    );
  }
}

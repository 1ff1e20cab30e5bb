import { type Api, ApiDeclaration } from './declaration/api-declaration';
import { type ApiOptions, readOptions } from './declaration/options';
import { registerPaths } from './register-paths';
import type { DeclaredRoute } from './routes/versioned-path';
import { type VersionedRouter, checkRouter } from './routes/router';

/**
 * Declares the routes of an API whose version is selected by the `Accept` header: `application/vnd.<vendor>+json;version=<n>`.
 * The routes are added to the router when `declare` has returned; when it throws, none are.
 *
 * @param declare is called once, synchronously, with the methods to declare versions and their resources
 * @returns the declared routes, for documentation and tests
 * @throws {DeclarationError} when the options or the declaration are invalid, or a controller is missing or incomplete
 */
export function api(
  router: VersionedRouter,
  options: ApiOptions,
  declare: (api: Api) => void,
): readonly DeclaredRoute[] {
  checkRouter(router);
  const declaration = new ApiDeclaration(readOptions(options));
  declaration.run(() => declare(declaration));
  const declared = declaration.end();
  registerPaths(router, declared);
  return declared.paths.flatMap((path) => [...path.routes()]);
}

import { fileURLToPath } from 'node:url';
import type { ControllerSource } from './controllers';
import { type Api, type BlockOptions, Declaration, isVersion } from './declaration';
import { DeclarationError, quoted } from './errors';
import type { DeclaredRoute } from './paths';
import { checkRouter, registerBlock } from './register';
import { isName } from './resources';
import { type VersionedRouter, routerOption } from './router';

export interface ApiOptions {
  /** The vendor in the media type `application/vnd.<vendorString>+json`. */
  readonly vendorString: string;
  /** The version of requests that name none. Default: the version that is declared first. */
  readonly defaultVersion?: number;
  /** The prefix of all paths; `''` for none. Default: `api`, whatever the namespace is. */
  readonly path?: string;
  /**
   * The folder of the controllers below `controllers`, and the prefix of route names; `''` for none. Default: `api`.
   */
  readonly namespace?: string;
  /**
   * Where the controllers are: a folder (a path relative to the working directory, or a `file:` URL), or a function
   * that returns the class for a name such as `api/v1/foo`.
   */
  readonly controllers: ControllerSource | URL;
  /**
   * The formats that paths may end with, as in `/foo/3.json`, and that the media type may name. Default: `json` alone.
   */
  readonly formats?: readonly string[];
  /** The methods of `update`. Default: `PUT` alone. */
  readonly updateMethods?: readonly ('PUT' | 'PATCH')[];
  /** Passed on to the router: whether paths are case-sensitive. Default: true. */
  readonly sensitive?: boolean;
  /** Passed on to the router: whether a path with a trailing slash is another path. Default: that of the router. */
  readonly strict?: boolean;
}

/**
 * Declares the routes of an API whose version is selected by the `Accept` header:
 * `application/vnd.<vendor>+json;version=<n>`. The routes are added to the router when `declare` has returned; when it
 * throws, none are.
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
  const { sensitive = true, strict = routerOption(router, 'strict') } = options;
  // A router that has the option keeps it for all routes.
  const matching = { sensitive: sensitive || routerOption(router, 'sensitive'), strict };
  const block = new Declaration({ ...readOptions(options), ...matching }).run(declare);
  registerBlock(router, block, matching);
  return block.tree.paths.flatMap((path) => path.routes());
}

/** A restricted name of RFC 6838, section 4.2, without `+`, which begins the suffix. */
const VENDOR = /^[a-z0-9][a-z0-9!#$&^_.-]{0,100}$/i;

/** @throws {DeclarationError} */
function readOptions(options: ApiOptions): Omit<BlockOptions, 'sensitive' | 'strict'> {
  const { vendorString, defaultVersion, namespace = 'api', path = 'api', controllers, ...others } = options;
  const { formats = ['json'], updateMethods = ['PUT'], sensitive: _, strict: __, ...unknown } = others;
  const [unknownName] = Object.keys(unknown);
  if (unknownName !== undefined) throw invalid(`unknown option '${unknownName}'`);
  if (typeof vendorString !== 'string' || !VENDOR.test(vendorString)) {
    throw invalid(
      `vendorString must be the vendor part of a media type, for example 'myvendor', not ${quoted(vendorString)}`,
    );
  }
  if (defaultVersion !== undefined && !isVersion(defaultVersion)) {
    throw invalid(`defaultVersion must be a positive whole number, not ${quoted(defaultVersion)}`);
  }
  if (!isListOf(formats, (format) => isName(format) && !format.includes('.'))) {
    throw invalid(`formats must be a list of file extensions without a dot, not ${quoted(formats)}`);
  }
  if (!isListOf(updateMethods, (method) => method === 'PUT' || method === 'PATCH')) {
    throw invalid(`updateMethods must be a list of PUT and PATCH, not ${quoted(updateMethods)}`);
  }
  return {
    vendor: vendorString.toLowerCase(),
    defaultVersion,
    namespace: segments('namespace', namespace),
    prefix: segments('path', path),
    controllers: sourceOf(controllers),
    formats: new Set(formats),
    updateMethods,
  };
}

function isListOf(value: unknown, accepts: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(accepts);
}

/** Splits at slashes; those at the beginning and the end mean nothing. */
function segments(option: string, value: unknown): readonly string[] {
  const parts = typeof value === 'string' ? value.replace(/^\//, '').replace(/\/$/, '').split('/') : [];
  if (value === '' || value === '/') return [];
  if (parts.length > 0 && parts.every(isName)) return parts;
  throw invalid(
    `${option} must be names of letters, digits, '-', '_', '.' and '~', separated by '/', not ${quoted(value)}; ` +
      'parameters belong to the prefix of the router',
  );
}

function sourceOf(controllers: unknown): ControllerSource {
  if (typeof controllers === 'function') return controllers as ControllerSource;
  if (controllers instanceof URL && controllers.protocol === 'file:') return fileURLToPath(controllers);
  if (typeof controllers === 'string' && controllers !== '') return controllers;
  throw invalid(`controllers must be a folder or a function that returns a class, not ${quoted(controllers)}`);
}

function invalid(problem: string): DeclarationError {
  return new DeclarationError([], problem);
}

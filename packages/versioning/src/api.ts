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
  /** Before `path`. Unlike it, may have parameters: `/shops/:shop`. Default: none. */
  readonly prefix?: string;
  /**
   * The host that is served; requests for others are passed on. A name without a port has any port, in any case; an
   * expression is tested with the host as it was sent, and without its port. Default: all hosts.
   */
  readonly host?: string | RegExp;
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
  /**
   * Passed on to the router: whether a URL must end where a path does. With false, a path also has the URLs below it
   * that no longer path has. Default: true.
   */
  readonly end?: boolean;
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
  const { sensitive = true, strict = routerOption(router, 'strict'), end = true } = options;
  for (const [name, value] of Object.entries({ sensitive, strict, end })) {
    if (typeof value !== 'boolean') throw invalid(`${name} must be true or false, not ${quoted(value)}`);
  }
  // A router that has the option keeps it for all routes.
  const matching = { sensitive: sensitive || routerOption(router, 'sensitive'), strict, end };
  const block = new Declaration({ ...readOptions(options), ...matching }).run(declare);
  registerBlock(router, block, matching);
  return block.tree.paths.flatMap((path) => path.routes());
}

/** A restricted name of RFC 6838, section 4.2, without `+`, which begins the suffix. */
const VENDOR = /^[a-z0-9][a-z0-9!#$&^_.-]{0,100}$/i;

/** A parameter in the syntax of all versions of the router. */
const PARAMETER = /^:[a-z_]\w*$/i;

/** @throws {DeclarationError} */
function readOptions(options: ApiOptions): Omit<BlockOptions, 'sensitive' | 'strict' | 'end'> {
  checkNames(Object.keys(options));
  const { vendorString, defaultVersion, namespace = 'api', path = 'api', prefix = '', host, controllers } = options;
  const { formats = ['json'], updateMethods = ['PUT'] } = options;
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
  if (host !== undefined && !(host instanceof RegExp) && (typeof host !== 'string' || host === '')) {
    throw invalid(`host must be the name of a host or a regular expression, not ${quoted(host)}`);
  }
  return {
    vendor: vendorString.toLowerCase(),
    defaultVersion,
    namespace: segments('namespace', namespace),
    prefix: [...segments('prefix', prefix, (part) => PARAMETER.test(part)), ...segments('path', path)],
    host,
    controllers: sourceOf(controllers),
    formats: new Set(formats),
    updateMethods,
  };
}

/** True for each option that there is, so that the compiler finds one that is forgotten. */
const NAMES: Readonly<Record<keyof ApiOptions, true>> = {
  vendorString: true,
  controllers: true,
  defaultVersion: true,
  namespace: true,
  path: true,
  prefix: true,
  host: true,
  formats: true,
  updateMethods: true,
  sensitive: true,
  strict: true,
  end: true,
};

/** What a router knows for all its routes at once. */
const OF_THE_ROUTER: readonly string[] = ['methods', 'exclusive', 'routerPath'];

/** @throws {DeclarationError} for an option that does not exist */
function checkNames(names: readonly string[]): void {
  const unknown = names.find((name) => !Object.hasOwn(NAMES, name));
  if (unknown === undefined) return;
  if (OF_THE_ROUTER.includes(unknown)) {
    throw invalid(`${unknown} is an option of a whole router, for all its routes: new Router({ ${unknown}: … })`);
  }
  const known = Object.keys(NAMES);
  const [nearest] = known.toSorted((one, other) => likeness(unknown, other) - likeness(unknown, one));
  const hint = likeness(unknown, nearest!) > 0 ? `the nearest is '${nearest}'` : `the options are ${known.join(', ')}`;
  throw invalid(`unknown option '${unknown}'; ${hint}`);
}

/**
 * The share of neighbouring letters that two names have in common, from 0 to 1. Finds the name for each that has one
 * letter too many, too few or wrong, or two that are swapped, and for a part of it, such as `vendor`.
 */
function likeness(one: string, other: string): number {
  const [pairs, others] = [pairsOf(one), pairsOf(other)];
  return (2 * [...pairs].filter((pair) => others.has(pair)).length) / (pairs.size + others.size);
}

/** Each letter with the next one; the first and the last also with a space. */
function pairsOf(name: string): ReadonlySet<string> {
  const letters = ` ${name.toLowerCase().replaceAll(/[-_]/g, '')} `;
  return new Set(Array.from({ length: letters.length - 1 }, (_, at) => letters.slice(at, at + 2)));
}

function isListOf(value: unknown, accepts: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(accepts);
}

/** Splits at slashes; those at the beginning and the end mean nothing. */
function segments(option: string, value: unknown, accepts = (_part: string) => false): readonly string[] {
  const parts = typeof value === 'string' ? value.replace(/^\//, '').replace(/\/$/, '').split('/') : [];
  if (value === '' || value === '/') return [];
  if (parts.length > 0 && parts.every((part) => isName(part) || accepts(part))) return parts;
  throw invalid(
    `${option} must be names of letters, digits, '-', '_', '.' and '~', separated by '/', not ${quoted(value)}; ` +
      "parameters, such as ':shop', belong to prefix",
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

import { fileURLToPath } from 'node:url';
import type { ControllerClass } from '../controllers/controller-class';
import { DeclarationError, quoted } from '../routes/declaration-error';
import { isName } from '../routes/names';

export interface ApiOptions {
  /** The vendor in the media type `application/vnd.<vendorString>+json`. */
  readonly vendorString: string;
  /** The version of requests that name none. Default: the version that is declared first. */
  readonly defaultVersion?: number;
  /** The prefix of all paths; `''` for none. Default: the namespace. */
  readonly path?: string;
  /** The folder of the controllers below `controllers`, and the prefix of route names; `''` for none. Default: `api`. */
  readonly namespace?: string;
  /**
   * Where the controllers are: a folder (a path relative to the working directory, or a `file:` URL), or a function that
   * returns the class for a name such as `api/v1/foo`.
   */
  readonly controllers: string | URL | ((name: string) => ControllerClass | undefined);
  /** The formats that paths may end with, as in `/foo/3.json`. Default: `json` alone. */
  readonly formats?: readonly string[];
  /** Passed on to the router: whether paths are case-sensitive. Default: true. */
  readonly sensitive?: boolean;
  /** Passed on to the router: whether a path with a trailing slash is another path. Default: that of the router. */
  readonly strict?: boolean;
}

/** The options of an `api` block, checked and completed. */
export interface BlockOptions {
  /** In lower case, as media types are compared. */
  readonly vendor: string;
  /** Undefined: the version that is declared first. */
  readonly defaultVersion: number | undefined;
  readonly pathSegments: readonly string[];
  readonly namespaceSegments: readonly string[];
  /** A folder, or a function that returns the class for a name. */
  readonly controllers: string | ((name: string) => ControllerClass | undefined);
  readonly formats: ReadonlySet<string>;
  /** For `router.register`. */
  readonly routeOptions: { readonly sensitive: boolean; readonly strict?: boolean };
}

const KNOWN_OPTIONS: ReadonlySet<string> = new Set([
  'vendorString',
  'defaultVersion',
  'path',
  'namespace',
  'controllers',
  'formats',
  'sensitive',
  'strict',
] satisfies (keyof ApiOptions)[]);

/** A restricted name of RFC 6838, section 4.2, without `+`, which begins the suffix. */
const VENDOR = /^[a-z0-9][a-z0-9!#$&^_.-]{0,100}$/i;

/** @throws {DeclarationError} */
export function readOptions(options: ApiOptions): BlockOptions {
  const unknown = Object.keys(options).find((name) => !KNOWN_OPTIONS.has(name));
  if (unknown !== undefined) {
    throw invalid(`unknown option '${unknown}'; the options are ${[...KNOWN_OPTIONS].join(', ')}`);
  }
  const { vendorString, defaultVersion, namespace = 'api', path = namespace, formats = ['json'] } = options;
  if (typeof vendorString !== 'string' || !VENDOR.test(vendorString)) {
    throw invalid(
      `vendorString must be the vendor part of a media type, for example 'myvendor', not ${quoted(vendorString)}`,
    );
  }
  if (defaultVersion !== undefined && !isVersion(defaultVersion)) {
    throw invalid(`defaultVersion must be a positive whole number, not ${quoted(defaultVersion)}`);
  }
  if (!Array.isArray(formats) || !formats.every((format) => isName(format) && !format.includes('.'))) {
    throw invalid(`formats must be a list of file extensions without a dot, not ${quoted(formats)}`);
  }
  const { sensitive = true, strict } = options;
  const namespaceSegments = segments('namespace', namespace);
  return {
    vendor: vendorString.toLowerCase(),
    defaultVersion,
    pathSegments: segments('path', path),
    namespaceSegments,
    controllers: controllersOf(options),
    formats: new Set(formats),
    routeOptions: { sensitive, ...(strict !== undefined && { strict }) },
  };
}

/** Whether a value is a version: a positive whole number. */
export function isVersion(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

/** Splits at slashes; those at the beginning and the end mean nothing. */
function segments(option: string, value: unknown): readonly string[] {
  const parts = typeof value === 'string' ? value.replace(/^\//, '').replace(/\/$/, '').split('/') : [];
  if (value === '' || value === '/') return [];
  if (parts.length === 0 || !parts.every(isName)) {
    throw invalid(
      `${option} must be names of letters, digits, '-', '_', '.' and '~', separated by '/', not ${quoted(value)}; ` +
        'parameters belong to the prefix of the router',
    );
  }
  return parts;
}

function controllersOf({ controllers }: ApiOptions): BlockOptions['controllers'] {
  if (typeof controllers === 'function') return controllers;
  if (controllers instanceof URL && controllers.protocol === 'file:') return fileURLToPath(controllers);
  if (typeof controllers === 'string' && controllers !== '') return controllers;
  throw invalid(`controllers must be a folder or a function that returns a class, not ${quoted(controllers)}`);
}

function invalid(problem: string): DeclarationError {
  return new DeclarationError([], problem);
}

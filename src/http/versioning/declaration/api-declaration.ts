import { ControllerLoader } from '../controllers/controller-loader';
import { checkActions } from '../controllers/controller-class';
import {
  type Action,
  RESOURCE_PATHS,
  type ResourcePath,
  SINGLE_RESOURCE_PATHS,
  actionsOf,
  isAction,
} from '../routes/actions';
import { PathTable } from '../routes/path-table';
import type { ApiBlock, VersionedPath } from '../routes/versioned-path';
import { DeclarationError, quoted } from '../routes/declaration-error';
import { identifier, isName } from '../routes/names';
import { type BlockOptions, isVersion } from './options';
import {
  type Resource,
  type Scope,
  TOP,
  belowNamespace,
  belowResource,
  belowSingleResource,
  joinScopes,
  scopeSince,
} from './scope';

export interface ResourcesOptions {
  /** The actions that get routes. Default: all of the resource. */
  readonly only?: Action | readonly Action[];
}

/** The methods that declare versions and their resources, within the function that is passed to `api`. */
export interface Api {
  /** Declares the routes of a version, a positive whole number. */
  version(version: number, declare: () => void): void;
  /** Stores the resources that are declared within it under a name. A later cache of the same name replaces it. */
  cache(options: { readonly as: string }, declare: () => void): void;
  /** Declares all resources of caches again, in the enclosing version and namespace. */
  inherit(options: { readonly from: string | readonly string[] }): void;
  /** Declares the routes of a resource. Resources declared within it get its path and its parameter, `:post_id`, before theirs. */
  resources(name: string, declareNested?: () => void): void;
  resources(name: string, options: ResourcesOptions, declareNested?: () => void): void;
  /** Declares the routes of a resource of which there is one: without `index`, and without an id in its paths. */
  resource(name: string, declareNested?: () => void): void;
  resource(name: string, options: ResourcesOptions, declareNested?: () => void): void;
  /** Puts a name before the paths, the route names and the controllers' folder of the resources declared within it. */
  namespace(name: string, declare: () => void): void;
}

/** A call of `resources` or `resource`. */
interface ResourceCall {
  readonly call: string;
  readonly paths: readonly ResourcePath[];
  /** The scope of what is nested in it. */
  readonly below: (scope: Scope, name: string) => Scope;
  readonly name: string;
  readonly options: ResourcesOptions;
  readonly declareNested: (() => void) | undefined;
}

/** A cache that is being filled, and the scope in which it was opened. */
interface OpenCache {
  readonly resources: Resource[];
  readonly scope: Scope;
}

/** The state of an `api` block while it is declared. */
export class ApiDeclaration implements Api {
  readonly #options: BlockOptions;
  readonly #controllers: ControllerLoader;
  readonly #paths = new PathTable();
  readonly #versions: number[] = [];
  readonly #caches = new Map<string, readonly Resource[]>();
  #openCaches: readonly OpenCache[] = [];
  #version: number | undefined;
  #scope: Scope = TOP;
  /** The enclosing calls, outermost first. */
  #place: readonly string[] = [];
  #hasEnded = false;

  constructor(options: BlockOptions) {
    this.#options = options;
    this.#controllers = new ControllerLoader(options.controllers);
  }

  /** @throws {DeclarationError} */
  run(declare: () => unknown): void {
    this.#within([], declare);
    if (this.#versions.length === 0) throw this.#error('no version is declared');
    const { defaultVersion } = this.#options;
    if (defaultVersion !== undefined && !this.#versions.includes(defaultVersion)) {
      throw this.#error(`defaultVersion is ${defaultVersion}, which is not declared`);
    }
    this.#hasEnded = true;
  }

  /** The declared paths, and what they have in common. */
  end(): { readonly block: ApiBlock; readonly paths: readonly VersionedPath[] } {
    const { vendor, defaultVersion, formats, routeOptions } = this.#options;
    return {
      block: {
        vendor,
        formats,
        routeOptions,
        defaultVersion: defaultVersion ?? this.#versions[0]!,
        versions: this.#versions.toSorted((one, other) => one - other),
      },
      paths: this.#paths.sorted(),
    };
  }

  version(version: number, declare: () => void): void {
    this.#requireOpen('version');
    if (this.#version !== undefined) throw this.#error(`version ${quoted(version)} is inside another version`);
    if (!isVersion(version)) throw this.#error(`a version must be a positive whole number, not ${quoted(version)}`);
    if (this.#versions.includes(version)) throw this.#error(`version ${version} is declared twice`);
    this.#versions.push(version);
    this.#version = version;
    this.#within([`version ${version}`], declare);
    this.#version = undefined;
  }

  cache(options: { readonly as: string }, declare: () => void): void {
    this.#requireVersion('cache');
    const name = options?.as;
    if (typeof name !== 'string' || name === '') throw this.#error(`cache requires a name: { as: 'name' }`);
    const opened: OpenCache = { resources: [], scope: this.#scope };
    const outer = this.#openCaches;
    this.#openCaches = [...outer, opened];
    this.#within([`cache ${quoted(name)}`], declare);
    this.#openCaches = outer;
    this.#caches.set(name, opened.resources);
  }

  inherit(options: { readonly from: string | readonly string[] }): void {
    this.#requireVersion('inherit');
    const from = options?.from;
    const names: readonly unknown[] = Array.isArray(from) ? from : [from];
    if (names.length === 0) throw this.#error(`inherit requires the name of a cache: { from: 'name' }`);
    for (const name of names) {
      const resources = this.#caches.get(String(name));
      if (typeof name !== 'string' || resources === undefined) throw this.#unknownCache(name);
      this.#within([`inherit ${quoted(name)}`], () => {
        const scope = this.#scope;
        for (const resource of resources) {
          this.#declare({ ...resource, scope: joinScopes(scope, resource.scope) });
        }
      });
    }
  }

  resources(name: string, second?: ResourcesOptions | (() => void), third?: () => void): void {
    const { options, declareNested } = splitArguments(second, third);
    this.#resource({ call: 'resources', paths: RESOURCE_PATHS, below: belowResource, name, options, declareNested });
  }

  resource(name: string, second?: ResourcesOptions | (() => void), third?: () => void): void {
    const { options, declareNested } = splitArguments(second, third);
    const paths = SINGLE_RESOURCE_PATHS;
    this.#resource({ call: 'resource', paths, below: belowSingleResource, name, options, declareNested });
  }

  namespace(name: string, declare: () => void): void {
    this.#requireVersion('namespace');
    if (!isName(name)) throw this.#error(`namespace requires a name, not ${quoted(name)}`);
    const outer = this.#scope;
    this.#scope = belowNamespace(outer, name);
    this.#within([`namespace ${quoted(name)}`], declare);
    this.#scope = outer;
  }

  #resource({ call, paths, below, name, options, declareNested }: ResourceCall): void {
    this.#requireVersion(call);
    if (!isName(name)) throw this.#error(`${call} requires a name, not ${quoted(name)}`);
    const place = `${call} ${quoted(name)}`;
    this.#within([place], () =>
      this.#declare({ name, actions: this.#actions(options, actionsOf(paths)), paths, scope: this.#scope }),
    );
    if (declareNested === undefined) return;
    const outer = this.#scope;
    this.#scope = below(outer, name);
    this.#within([place], declareNested);
    this.#scope = outer;
  }

  /** Runs a function of the caller; errors in it name the place. */
  #within(place: readonly string[], declare: () => unknown): void {
    const outer = this.#place;
    this.#place = [...outer, ...place];
    if (typeof declare !== 'function') throw this.#error('a function is required that declares what is inside');
    const result: unknown = declare();
    if (typeof Object(result).then === 'function') {
      throw this.#error('the function must be synchronous: routes are registered when it returns');
    }
    this.#place = outer;
  }

  /** Adds the routes of a resource to the version and to the caches that are open. */
  #declare(resource: Resource): void {
    for (const { resources, scope } of this.#openCaches) {
      resources.push({ ...resource, scope: scopeSince(resource.scope, scope) });
    }
    const version = this.#version!;
    const { namespaceSegments, pathSegments } = this.#options;
    const { name, actions, paths, scope } = resource;
    const controllerName = [...namespaceSegments, `v${version}`, ...scope.folders, name].join('/');
    const controller = this.#inPlace(() =>
      checkActions(this.#controllers.load(controllerName), actions, controllerName),
    );
    const path = [...pathSegments, ...scope.path, name];
    const before = [...namespaceSegments.map(identifier), ...scope.names];
    for (const { suffix, methods, nameOf } of paths) {
      for (const [method, action] of Object.entries(methods)) {
        if (!actions.includes(action)) continue;
        const route = { segments: [...path, ...suffix], name: nameOf(before, name), version, method };
        this.#inPlace(() => this.#paths.add(route, { controller, action }));
      }
    }
  }

  #actions({ only, ...others }: ResourcesOptions, all: readonly Action[]): readonly Action[] {
    const [unknownOption] = Object.keys(others);
    if (unknownOption !== undefined) throw this.#error(`unknown option '${unknownOption}'; the only option is 'only'`);
    if (only === undefined) return all;
    const actions: readonly Action[] = typeof only === 'string' ? [only] : only;
    const unknown = Array.isArray(actions)
      ? actions.find((action) => !isAction(action) || !all.includes(action))
      : only;
    if (unknown !== undefined) {
      throw this.#error(`there is no action ${quoted(unknown)}; the actions are ${all.join(', ')}`);
    }
    return actions;
  }

  #requireOpen(call: string): void {
    if (this.#hasEnded) throw this.#error(`${call} is called after the declaration has ended`);
  }

  #requireVersion(call: string): void {
    this.#requireOpen(call);
    if (this.#version === undefined) throw this.#error(`${call} must be inside a version`);
  }

  #unknownCache(name: unknown): DeclarationError {
    const known = [...this.#caches.keys()].map(quoted).join(', ');
    return this.#error(
      `there is no cache ${quoted(name)}; ${known === '' ? 'none is declared before' : `declared before are ${known}`}`,
    );
  }

  #inPlace<T>(check: () => T): T {
    try {
      return check();
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      throw new DeclarationError(this.#place, error.message, { cause: error });
    }
  }

  #error(problem: string): DeclarationError {
    return new DeclarationError(this.#place, problem);
  }
}

/** The options may be left out. */
function splitArguments(
  second: ResourcesOptions | (() => void) | undefined,
  third: (() => void) | undefined,
): Pick<ResourceCall, 'options' | 'declareNested'> {
  return typeof second === 'function'
    ? { options: {}, declareNested: second }
    : { options: second ?? {}, declareNested: third };
}

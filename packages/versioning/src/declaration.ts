import { type ControllerSource, loadController } from './controllers';
import type { ApiBlock } from './dispatch';
import { DeclarationError, quoted } from './errors';
import { type MatchOptions, PathTree } from './paths';
import {
  ACTIONS,
  type Action,
  type Enclosing,
  type Resource,
  type ResourceKind,
  identifier,
  isName,
  routesOf,
} from './resources';

export interface ResourceOptions {
  /** The actions that get routes. Default: all of the resource. */
  readonly only?: Action | readonly Action[];
  /**
   * Whether members of this resource, and of those nested in it, have paths and names without the enclosing resources:
   * `/replies/:id`, but `/posts/:post_id/replies`.
   */
  readonly shallow?: boolean;
}

/** The methods that declare versions and their resources, within the function that is passed to `api`. */
export interface Api {
  /** Declares the routes of a version, a positive whole number. */
  version(version: number, declare: () => void): void;
  /** Stores the resources that are declared within it under a name. A later cache of the same name replaces it. */
  cache(options: { readonly as: string }, declare: () => void): void;
  /** Declares all resources of caches again, in the enclosing version and namespace. */
  inherit(options: { readonly from: string | readonly string[] }): void;
  /**
   * Declares the routes of a resource. Resources declared within it get its path and its parameter, `:post_id`, before
   * theirs.
   */
  resources(name: string, declareNested?: () => void): void;
  resources(name: string, options: ResourceOptions, declareNested?: () => void): void;
  /** Declares the routes of a resource of which there is one: without `index`, and without an id in its paths. */
  resource(name: string, declareNested?: () => void): void;
  resource(name: string, options: ResourceOptions, declareNested?: () => void): void;
  /** Puts a name before the paths, the route names and the controllers' folder of the resources declared within it. */
  namespace(name: string, declare: () => void): void;
}

/** The options of an `api` block, checked and completed. */
export interface BlockOptions extends MatchOptions, Pick<ApiBlock, 'vendor' | 'host'> {
  /** Undefined: the version that is declared first. */
  readonly defaultVersion: number | undefined;
  readonly namespace: readonly string[];
  readonly controllers: ControllerSource;
  readonly updateMethods: readonly string[];
}

/** A cache that is being filled, and how many namespaces and resources enclose it. */
interface OpenCache {
  readonly resources: Resource[];
  readonly depth: number;
}

/** The state of an `api` block while it is declared. */
export class Declaration implements Api {
  readonly #options: BlockOptions;
  readonly #tree: PathTree;
  readonly #versions: number[] = [];
  readonly #caches = new Map<string, readonly Resource[]>();
  #openCaches: readonly OpenCache[] = [];
  #version: number | undefined;
  #scope: readonly Enclosing[] = [];
  /** The enclosing calls, outermost first. */
  #place: readonly string[] = [];
  #hasEnded = false;

  constructor(options: BlockOptions) {
    this.#options = options;
    this.#tree = new PathTree(options);
  }

  /** @throws {DeclarationError} */
  run(declare: (api: Api) => unknown): ApiBlock {
    this.#within([], () => declare(this));
    const [first] = this.#versions;
    const { defaultVersion = first } = this.#options;
    if (defaultVersion === undefined || first === undefined) throw this.#error('no version is declared');
    if (!this.#versions.includes(defaultVersion)) {
      throw this.#error(`defaultVersion is ${defaultVersion}, which is not declared`);
    }
    this.#hasEnded = true;
    const versions = this.#versions.toSorted((one, other) => one - other);
    return { ...this.#options, defaultVersion, versions, tree: this.#tree };
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
    const opened: OpenCache = { resources: [], depth: this.#scope.length };
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
        for (const resource of resources) this.#declare({ ...resource, scope: [...this.#scope, ...resource.scope] });
      });
    }
  }

  resources(name: string, ...rest: RestArguments): void {
    this.#resource('resources', name, rest);
  }

  resource(name: string, ...rest: RestArguments): void {
    this.#resource('resource', name, rest);
  }

  namespace(name: string, declare: () => void): void {
    this.#requireVersion('namespace');
    if (!isName(name)) throw this.#error(`namespace requires a name, not ${quoted(name)}`);
    this.#nested({ kind: 'namespace', name }, declare);
  }

  #resource(kind: ResourceKind, name: string, [second, third]: RestArguments): void {
    this.#requireVersion(kind);
    if (!isName(name)) throw this.#error(`${kind} requires a name, not ${quoted(name)}`);
    // The options may be left out.
    const [options, declareNested] = typeof second === 'function' ? [{}, second] : [second ?? {}, third];
    const isShallow = options.shallow === true;
    this.#within([`${kind} ${quoted(name)}`], () => {
      this.#declare({ kind, name, actions: this.#actions(kind, options), isShallow, scope: this.#scope });
    });
    if (declareNested !== undefined) this.#nested({ kind, name, isShallow }, declareNested);
  }

  #nested(enclosing: Enclosing, declare: () => unknown): void {
    const outer = this.#scope;
    this.#scope = [...outer, enclosing];
    this.#within([`${enclosing.kind} ${quoted(enclosing.name)}`], declare);
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
    for (const { resources, depth } of this.#openCaches) {
      resources.push({ ...resource, scope: resource.scope.slice(depth) });
    }
    const version = this.#version!;
    const { prefix, namespace, controllers, updateMethods } = this.#options;
    const { name, actions, scope } = resource;
    const folders = scope.filter(({ kind }) => kind === 'namespace').map((each) => each.name);
    const controllerName = [...namespace, `v${version}`, ...folders, name].join('/');
    try {
      const controller = loadController(controllers, controllerName, actions);
      for (const route of routesOf(resource, { path: prefix, names: namespace.map(identifier), updateMethods })) {
        this.#tree.add(route, version, { controller, action: route.action });
      }
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      throw new DeclarationError(this.#place, error.message, { cause: error });
    }
  }

  #actions(kind: ResourceKind, { only, shallow, ...others }: ResourceOptions): readonly Action[] {
    const [unknownOption] = Object.keys(others);
    if (unknownOption !== undefined) {
      throw this.#error(`unknown option '${unknownOption}'; the options are 'only' and 'shallow'`);
    }
    if (shallow !== undefined && typeof shallow !== 'boolean') {
      throw this.#error(`shallow must be true or false, not ${quoted(shallow)}`);
    }
    const all = ACTIONS[kind];
    if (only === undefined) return all;
    const actions = typeof only === 'string' ? [only] : only;
    const unknown = Array.isArray(actions) ? actions.find((action) => !all.includes(action as Action)) : only;
    if (unknown === undefined) return actions;
    throw this.#error(`there is no action ${quoted(unknown)}; the actions are ${all.join(', ')}`);
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

  #error(problem: string): DeclarationError {
    return new DeclarationError(this.#place, problem);
  }
}

/** What follows the name of a resource; the options may be left out. */
type RestArguments = [second?: ResourceOptions | (() => void), third?: () => void];

/** Whether a value is a version: a positive whole number. */
export function isVersion(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

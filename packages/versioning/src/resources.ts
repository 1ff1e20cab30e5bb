import { singular } from 'pluralize';

/** A method of a controller that routes lead to. */
export type Action = 'index' | 'create' | 'new' | 'edit' | 'show' | 'update' | 'destroy';

/** Whether there are many of a resource, each with an id, or one. */
export type ResourceKind = 'resources' | 'resource';

/**
 * The paths of a resource, as in Rails: what follows its own path, its methods, and what is before the name of its
 * route.
 */
interface ResourcePath {
  readonly suffix: readonly string[];
  readonly methods: Readonly<Record<string, Action>>;
  readonly prefix?: 'new' | 'edit';
}

/** Without PATCH, which `updateMethods` adds. HEAD follows GET. */
const PATHS: Readonly<Record<ResourceKind, readonly ResourcePath[]>> = {
  resources: [
    { suffix: [], methods: { GET: 'index', POST: 'create' } },
    { suffix: ['new'], methods: { GET: 'new' }, prefix: 'new' },
    { suffix: [':id', 'edit'], methods: { GET: 'edit' }, prefix: 'edit' },
    { suffix: [':id'], methods: { GET: 'show', PUT: 'update', DELETE: 'destroy' } },
  ],
  resource: [
    { suffix: [], methods: { GET: 'show', POST: 'create', PUT: 'update', DELETE: 'destroy' } },
    { suffix: ['new'], methods: { GET: 'new' }, prefix: 'new' },
    { suffix: ['edit'], methods: { GET: 'edit' }, prefix: 'edit' },
  ],
};

/** The actions of each kind, in the order of messages. */
export const ACTIONS: Readonly<Record<ResourceKind, readonly Action[]>> = {
  resources: ['index', 'create', 'new', 'edit', 'show', 'update', 'destroy'],
  resource: ['create', 'new', 'edit', 'show', 'update', 'destroy'],
};

/** A namespace or resource that encloses resources. */
export interface Enclosing {
  readonly kind: 'namespace' | ResourceKind;
  readonly name: string;
  readonly isShallow?: boolean;
}

/** A declared resource. */
export interface Resource {
  readonly kind: ResourceKind;
  readonly name: string;
  readonly actions: readonly Action[];
  readonly isShallow: boolean;
  /** What encloses it, outermost first. */
  readonly scope: readonly Enclosing[];
}

/** What all routes of an `api` block have in common. */
export interface RouteBase {
  /** Segments before those of resources. */
  readonly path: readonly string[];
  /** Parts of route names before those of resources. */
  readonly names: readonly string[];
  /** The methods of `update`. */
  readonly updateMethods: readonly string[];
}

/** One method of a path. */
export interface ResourceRoute {
  readonly segments: readonly string[];
  /** For example `edit_api_post`. */
  readonly name: string;
  readonly method: string;
  readonly action: Action;
}

/** The routes of a resource. */
export function routesOf(resource: Resource, base: RouteBase): readonly ResourceRoute[] {
  const { kind, name, actions, scope } = resource;
  const isShallow = resource.isShallow || scope.some((each) => each.isShallow);
  return PATHS[kind].flatMap(({ suffix, methods, prefix }) => {
    const enclosing = isShallow && suffix[0] === ':id' ? scope.filter(isNamespace) : fromShallowMember(scope);
    const names = [...base.names, ...enclosing.map(partOfName), ownName(resource, suffix)];
    if (prefix !== undefined) names.unshift(prefix);
    const segments = [...base.path, ...enclosing.flatMap(segmentsOf), name, ...suffix];
    return Object.entries(methods)
      .filter(([, action]) => actions.includes(action))
      .flatMap(([method, action]) =>
        (action === 'update' ? base.updateMethods : [method]).map((each) => ({
          segments,
          name: names.join('_'),
          method: each,
          action,
        })),
      );
  });
}

function isNamespace({ kind }: Enclosing): boolean {
  return kind === 'namespace';
}

/**
 * The path of what is nested in a shallow resource begins at its member: what encloses that one is dropped, except
 * namespaces.
 */
function fromShallowMember(scope: readonly Enclosing[]): readonly Enclosing[] {
  const shallowFrom = scope.findIndex((each) => each.isShallow);
  const member = scope.findLastIndex(({ kind }) => kind === 'resources');
  if (shallowFrom === -1 || member < shallowFrom) return scope;
  return scope.filter((each, at) => at >= member || isNamespace(each));
}

/** `:post_id` is the parameter of an enclosing resource. */
function segmentsOf({ kind, name }: Enclosing): readonly string[] {
  return kind === 'resources' ? [name, `:${memberName(name)}_id`] : [name];
}

function partOfName({ kind, name }: Enclosing): string {
  return kind === 'resources' ? memberName(name) : identifier(name);
}

/**
 * The part of route names for a resource: `replies` for its collection, otherwise `reply`. A collection whose name has
 * no singular of its own gets `_index`, as in Rails, because the member route has the plain name: `news_index`.
 */
function ownName({ kind, name }: Resource, suffix: readonly string[]): string {
  if (kind === 'resource') return identifier(name);
  const member = memberName(name);
  if (suffix.length > 0) return member;
  return member === identifier(name) ? `${member}_index` : identifier(name);
}

/** The name of one of a resource, for its parameter and its member routes: `replies` becomes `reply`. */
function memberName(resource: string): string {
  return identifier(singular(resource));
}

/** A name as part of a route name or a parameter: `rate-limits` becomes `rate_limits`. */
export function identifier(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_]/g, '_');
}

/** Characters that a URL does not encode and that mean nothing to the router. */
const NAME = /^[A-Za-z0-9_~-][A-Za-z0-9_.~-]*$/;

/** Whether a value can be a segment of a path, a folder and a part of a route name. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && NAME.test(value);
}

import type { ControllerClass } from './controllers';
import type { Action, ResourceRoute } from './resources';

/** What a request is routed to. */
export interface RouteTarget {
  readonly controller: ControllerClass;
  readonly action: Action;
}

/** A route as it was declared. */
export interface DeclaredRoute {
  readonly version: number;
  readonly method: string;
  /** Without the optional format: `/api/posts/:id`. */
  readonly path: string;
  /** For `router.url`; the same for all methods and versions of the path. Empty when a path declared earlier has the name. */
  readonly name: string;
  readonly action: Action;
}

/** One path of an API, in all versions: what each version answers to each method. */
export class VersionedPath {
  /** For example `['api', 'foo', ':id']`. */
  readonly segments: readonly string[];
  /** Empty: none. */
  readonly name: string;
  readonly #targets = new Map<number, Map<string, RouteTarget>>();

  constructor(segments: readonly string[], name: string) {
    this.segments = segments;
    this.name = name;
  }

  /** In the syntax of the router, without the optional format. */
  get pattern(): string {
    return `/${this.segments.join('/')}`;
  }

  /** Paths with the same shape match the same requests: parameters are equal whatever their names are. */
  get shape(): string {
    return this.segments.map((segment) => (segment.startsWith(':') ? ':' : segment)).join('/');
  }

  add(version: number, method: string, target: RouteTarget): void {
    let targets = this.#targets.get(version);
    if (targets === undefined) this.#targets.set(version, (targets = new Map()));
    targets.set(method, target);
  }

  /** The target of a method in a version; HEAD is answered as GET. */
  target(version: number, method: string): RouteTarget | undefined {
    return this.#targets.get(version)?.get(method === 'HEAD' ? 'GET' : method);
  }

  /** The methods that a version answers, HEAD included. */
  methods(version: number): readonly string[] {
    const methods = [...(this.#targets.get(version)?.keys() ?? [])];
    return methods.includes('GET') ? ['HEAD', ...methods] : methods;
  }

  /** Every version and method that has a target. */
  *routes(): IterableIterator<DeclaredRoute> {
    for (const [version, targets] of this.#targets) {
      for (const [method, { action }] of targets) {
        yield { version, method, path: this.pattern, name: this.name, action };
      }
    }
  }
}

/** The paths of an `api` block, in the order of their declaration. */
export class PathTable {
  readonly #paths = new Map<string, VersionedPath>();
  /** By version, method and shape: what a collision is. */
  readonly #taken = new Map<string, VersionedPath>();
  readonly #names = new Set<string>();

  get paths(): readonly VersionedPath[] {
    return [...this.#paths.values()];
  }

  /** @throws Error when another route has the same version, method and path */
  add({ segments, name, method }: ResourceRoute, version: number, target: RouteTarget): void {
    const key = segments.join('/');
    const path = this.#paths.get(key) ?? new VersionedPath(segments, this.#names.has(name) ? '' : name);
    const place = `${version} ${method} ${path.shape}`;
    const rival = this.#taken.get(place);
    if (rival !== undefined) {
      const as = rival.name === '' ? '' : `, as the route '${rival.name}'`;
      throw new Error(`version ${version} already has ${method} ${rival.pattern}${as}`);
    }
    path.add(version, method, target);
    this.#taken.set(place, path);
    this.#names.add(path.name);
    this.#paths.set(key, path);
  }
}

/** A path that matches a request. */
export interface Match {
  readonly path: VersionedPath;
  /** The values of its parameters, decoded, and `format` if the request ends with one. */
  readonly params: Readonly<Record<string, string>>;
}

/** How requests are compared with paths. */
export interface MatchOptions {
  readonly isSensitive: boolean;
  /** A slash at the end makes another path. */
  readonly isStrict: boolean;
  readonly formats: ReadonlySet<string>;
  /** How many segments of the paths the router has compared. */
  readonly skip: number;
}

/** What follows a segment. */
interface Node {
  readonly names: Map<string, Node>;
  parameter?: Node;
  readonly paths: VersionedPath[];
}

/** Finds the paths that match a request, segment by segment. */
export class PathTree {
  readonly #root: Node = newNode();
  readonly #options: MatchOptions;

  constructor(paths: readonly VersionedPath[], options: MatchOptions) {
    this.#options = options;
    for (const path of paths) {
      let node = this.#root;
      for (const segment of path.segments.slice(options.skip)) node = this.#child(node, segment);
      node.paths.push(path);
    }
  }

  /**
   * All paths that match, the best first: at the same place, a name comes before a parameter.
   *
   * @param requested the segments of the request's path, as they were sent
   */
  find(requested: readonly string[]): readonly Match[] {
    const isSlashLast = requested.length > 1 && requested.at(-1) === '';
    const segments = isSlashLast && !this.#options.isStrict ? requested.slice(0, -1) : requested;
    const last = segments.at(-1) ?? '';
    const dot = last.lastIndexOf('.');
    const format = last.slice(dot + 1);
    const found: Match[] = [];
    if (dot > 0 && this.#options.formats.has(format)) {
      this.#collect(this.#root, [...segments.slice(0, -1), last.slice(0, dot)], { values: [], format, found });
    }
    // Other dots belong to a parameter: `/foo/a.b` has the id `a.b`.
    if (found.length === 0) this.#collect(this.#root, segments, { values: [], format: undefined, found });
    return found;
  }

  #collect(node: Node, segments: readonly string[], state: Collected): void {
    const [segment, ...rest] = segments;
    if (segment === undefined) {
      for (const path of node.paths) state.found.push(matchOf(path, state));
      return;
    }
    const named = node.names.get(this.#key(segment));
    if (named !== undefined) this.#collect(named, rest, state);
    if (node.parameter === undefined || segment === '') return;
    this.#collect(node.parameter, rest, { ...state, values: [...state.values, segment] });
  }

  #child(node: Node, segment: string): Node {
    if (segment.startsWith(':')) return (node.parameter ??= newNode());
    const key = this.#key(segment);
    let child = node.names.get(key);
    if (child === undefined) node.names.set(key, (child = newNode()));
    return child;
  }

  #key(segment: string): string {
    return this.#options.isSensitive ? segment : segment.toLowerCase();
  }
}

interface Collected {
  readonly values: readonly string[];
  readonly format: string | undefined;
  readonly found: Match[];
}

function newNode(): Node {
  return { names: new Map(), paths: [] };
}

function matchOf(path: VersionedPath, { values, format }: Collected): Match {
  const names = path.segments.filter((segment) => segment.startsWith(':'));
  const params = Object.fromEntries(names.map((name, at) => [name.slice(1), decoded(values[at]!)]));
  return { path, params: format === undefined ? params : { ...params, format } };
}

/** As the router decodes: a text that is not encoded right stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

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
  /**
   * For `router.url`; the same for all methods and versions of the path. Empty when a path declared earlier has the
   * name.
   */
  readonly name: string;
  readonly action: Action;
}

/** One path of an API, in all versions: what each version answers to each method. */
export class VersionedPath {
  /** For example `['api', 'foo', ':id']`. */
  readonly segments: readonly string[];
  /** Empty: none. */
  readonly name: string;
  /** By version and method. */
  readonly #routes = new Map<string, RouteTarget & Pick<DeclaredRoute, 'version' | 'method'>>();

  constructor(segments: readonly string[], name: string) {
    this.segments = segments;
    this.name = name;
  }

  /** In the syntax of the router, without the optional format. */
  get pattern(): string {
    return `/${this.segments.join('/')}`;
  }

  add(version: number, method: string, target: RouteTarget): void {
    this.#routes.set(`${version} ${method}`, { ...target, version, method });
  }

  /** The target of a method in a version; HEAD is answered as GET. */
  target(version: number, method: string): RouteTarget | undefined {
    return this.#routes.get(`${version} ${method === 'HEAD' ? 'GET' : method}`);
  }

  /** The methods that a version answers, HEAD included. */
  methods(version: number): readonly string[] {
    const own = this.routes().filter((route) => route.version === version);
    return own.flatMap(({ method }) => (method === 'GET' ? ['HEAD', 'GET'] : [method]));
  }

  routes(): readonly DeclaredRoute[] {
    const { pattern, name } = this;
    return Array.from(this.#routes.values(), ({ version, method, action }) => ({
      version,
      method,
      path: pattern,
      name,
      action,
    }));
  }

  /** The decoded parameters of a request that matches, behind the prefix. */
  paramsOf(requested: readonly string[], prefixLength: number): Readonly<Record<string, string>> {
    const values = this.segments.map((segment, at) => [segment, decoded(requested[at]!)] as const).slice(prefixLength);
    const params = values.filter(([segment]) => segment.startsWith(':'));
    return Object.fromEntries(params.map(([segment, value]) => [segment.slice(1), value]));
  }
}

/** As the router decodes: a text that is not encoded right stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A path that matches a request. */
export interface Match {
  readonly path: VersionedPath;
  /** The values of its parameters, and `format` if the request ends with one. */
  readonly params: Readonly<Record<string, string>>;
}

/** How requests are compared with paths. */
export interface MatchOptions {
  readonly sensitive: boolean;
  /** A slash at the end makes another path. */
  readonly strict: boolean;
  /** False: a path also has the requests below it. */
  readonly end: boolean;
  /** The segments that all paths begin with, which the router compares; their parameters are its own. */
  readonly prefix: readonly string[];
  /** What a request may end with after a dot. */
  readonly formats: ReadonlySet<string>;
}

/** What follows a segment. */
interface Node {
  readonly names: Map<string, Node>;
  parameter?: Node;
  /** The paths that end here; they differ in the names of parameters. */
  readonly paths: VersionedPath[];
}

/** The paths of an `api` block, as a tree of their segments. */
export class PathTree {
  /** In the order of their declaration. */
  readonly paths: VersionedPath[] = [];
  readonly #options: MatchOptions;
  readonly #root: Node = { names: new Map(), paths: [] };
  /** Segments of the longest path. */
  #depth = 0;

  constructor(options: MatchOptions) {
    this.#options = options;
  }

  /** @throws Error when another route has the same version, method and path, whatever its parameters are called */
  add({ segments, name, method }: ResourceRoute, version: number, target: RouteTarget): void {
    const rival = this.rival(segments, version, method);
    if (rival !== undefined) {
      const as = rival.name === '' ? '' : `, as the route '${rival.name}'`;
      throw new Error(`version ${version} already has ${method} ${rival.pattern}${as}`);
    }
    const { paths } = this.#leaf(segments);
    let path = paths.find((each) => each.segments.join('/') === segments.join('/'));
    if (path === undefined) {
      const isTaken = this.paths.some((each) => each.name === name);
      path = new VersionedPath(segments, isTaken ? '' : name);
      paths.push(path);
      this.paths.push(path);
      this.#depth = Math.max(this.#depth, segments.length);
    }
    path.add(version, method, target);
  }

  /** The path that answers what a path with these segments would answer, too. */
  rival(segments: readonly string[], version: number, method: string): VersionedPath | undefined {
    return this.#leaf(segments).paths.find((path) => path.target(version, method) !== undefined);
  }

  /**
   * All paths that match a request, the best first: a longer one, and at the same place, a name before a parameter.
   *
   * @param rest the segments of the request's path behind the prefix, as they were sent
   */
  find(rest: readonly string[]): readonly Match[] {
    const { prefix, end } = this.#options;
    const requested = [...prefix, ...rest];
    if (end) return this.#whole(requested);
    const longest = Math.min(requested.length, this.#depth);
    return Array.from({ length: longest }, (_, less) => this.#whole(requested.slice(0, longest - less))).flat();
  }

  #whole(requested: readonly string[]): readonly Match[] {
    const segments = requested.at(-1) === '' && !this.#options.strict ? requested.slice(0, -1) : requested;
    const last = segments.at(-1) ?? '';
    const dot = last.lastIndexOf('.');
    const format = last.slice(dot + 1);
    if (dot > 0 && this.#options.formats.has(format)) {
      const found = this.#matches([...segments.slice(0, -1), last.slice(0, dot)], { format });
      if (found.length > 0) return found;
    }
    // Other dots belong to a parameter: `/foo/a.b` has the id `a.b`.
    return this.#matches(segments, {});
  }

  #matches(segments: readonly string[], format: Match['params']): readonly Match[] {
    const paths = this.#below(this.#root, segments);
    const { length } = this.#options.prefix;
    return paths.map((path) => ({ path, params: { ...path.paramsOf(segments, length), ...format } }));
  }

  #below(node: Node | undefined, [segment, ...rest]: readonly string[]): readonly VersionedPath[] {
    if (node === undefined || segment === '') return [];
    if (segment === undefined) return node.paths;
    return [...this.#below(node.names.get(this.#key(segment)), rest), ...this.#below(node.parameter, rest)];
  }

  /** The node at which a path ends. */
  #leaf(segments: readonly string[]): Node {
    let node = this.#root;
    for (const segment of segments) node = this.#child(node, segment);
    return node;
  }

  #child(node: Node, segment: string): Node {
    const isParameter = segment.startsWith(':');
    const known = isParameter ? node.parameter : node.names.get(this.#key(segment));
    if (known !== undefined) return known;
    const child: Node = { names: new Map(), paths: [] };
    if (isParameter) node.parameter = child;
    else node.names.set(this.#key(segment), child);
    return child;
  }

  #key(segment: string): string {
    return this.#options.sensitive ? segment : segment.toLowerCase();
  }
}

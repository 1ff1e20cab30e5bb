import type { ControllerClass } from '../controllers/controller-class';
import type { Action } from './actions';

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

/** What the paths of one `api` block have in common. */
export interface ApiBlock {
  /** In lower case. */
  readonly vendor: string;
  readonly defaultVersion: number;
  /** In ascending order. */
  readonly versions: readonly number[];
  readonly formats: ReadonlySet<string>;
  readonly routeOptions: { readonly sensitive: boolean; readonly strict?: boolean };
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

  /** The path in the syntax of the router, with an optional format. */
  get pattern(): string {
    return `/${this.segments.join('/')}{.:format}`;
  }

  /** Paths with the same shape match the same requests: parameters are equal whatever their names are. */
  get shape(): string {
    return this.segments.map((segment) => (isParameter(segment) ? ':' : segment)).join('/');
  }

  /** A version has one target for a method; {@link PathTable.add} has checked that. */
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
    const path = `/${this.segments.join('/')}`;
    for (const [version, targets] of this.#targets) {
      for (const [method, { action }] of targets) yield { version, method, path, name: this.name, action };
    }
  }
}

export function isParameter(segment: string): boolean {
  return segment.startsWith(':');
}

/**
 * For sorting paths: at the same place a name comes before a parameter, because the first path that matches decides. `/foo/new`
 * comes before `/foo/:id`.
 */
export function namesFirst(one: VersionedPath, other: VersionedPath): number {
  const [left, right] = [kinds(one), kinds(other)];
  return left < right ? -1 : Number(left > right);
}

function kinds({ segments }: VersionedPath): string {
  return segments.map((segment) => (isParameter(segment) ? '1' : '0')).join('');
}

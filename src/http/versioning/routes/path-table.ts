import { type RouteTarget, VersionedPath, namesFirst } from './versioned-path';

/** One method of a path in one version. */
export interface Route {
  readonly segments: readonly string[];
  /** Of the path, unless another one has it already. */
  readonly name: string;
  readonly version: number;
  readonly method: string;
}

/** The paths of an `api` block. */
export class PathTable {
  readonly #paths = new Map<string, VersionedPath>();
  /** By shape, version and method: what a collision is. */
  readonly #taken = new Map<string, VersionedPath>();
  readonly #names = new Set<string>();

  /** @throws Error when another route has the same version, method and path */
  add({ segments, name, version, method }: Route, target: RouteTarget): void {
    const key = segments.join('/');
    const path = this.#paths.get(key) ?? new VersionedPath(segments, this.#names.has(name) ? '' : name);
    const place = `${version} ${method} ${path.shape}`;
    const rival = this.#taken.get(place);
    if (rival !== undefined) {
      throw new Error(`version ${version} already has ${method} ${displayed(rival)}`);
    }
    path.add(version, method, target);
    this.#taken.set(place, path);
    this.#names.add(path.name);
    this.#paths.set(key, path);
  }

  /** In the order in which they must be matched. */
  sorted(): readonly VersionedPath[] {
    return [...this.#paths.values()].toSorted(namesFirst);
  }
}

function displayed({ segments, name }: VersionedPath): string {
  return `/${segments.join('/')}${name === '' ? '' : `, as the route '${name}'`}`;
}

import type { Action, ResourcePath } from '../routes/actions';
import { identifier, memberName } from '../routes/names';

/** The namespaces and resources that enclose a resource. */
export interface Scope {
  /** Segments of the path: `['nests', 'posts', ':post_id']`. */
  readonly path: readonly string[];
  /** Folders of the controllers: only the namespaces. */
  readonly folders: readonly string[];
  /** Parts of route names: `['nests', 'post']`. */
  readonly names: readonly string[];
}

/** A declared resource. */
export interface Resource {
  readonly name: string;
  readonly actions: readonly Action[];
  /** The paths that it may have. */
  readonly paths: readonly ResourcePath[];
  readonly scope: Scope;
}

/** Directly in a version. */
export const TOP: Scope = { path: [], folders: [], names: [] };

export function belowNamespace(scope: Scope, name: string): Scope {
  return joinScopes(scope, { path: [name], folders: [name], names: [identifier(name)] });
}

export function belowResource(scope: Scope, name: string): Scope {
  const member = memberName(name);
  return joinScopes(scope, { path: [name, `:${member}_id`], folders: [], names: [member] });
}

export function belowSingleResource(scope: Scope, name: string): Scope {
  return joinScopes(scope, { path: [name], folders: [], names: [identifier(name)] });
}

export function joinScopes(outer: Scope, inner: Scope): Scope {
  return {
    path: [...outer.path, ...inner.path],
    folders: [...outer.folders, ...inner.folders],
    names: [...outer.names, ...inner.names],
  };
}

/** What of a scope is inside an outer one. */
export function scopeSince(scope: Scope, outer: Scope): Scope {
  return {
    path: scope.path.slice(outer.path.length),
    folders: scope.folders.slice(outer.folders.length),
    names: scope.names.slice(outer.names.length),
  };
}

import { singular } from 'pluralize';

/** Characters that a URL does not encode and that mean nothing to the router. */
const NAME = /^[A-Za-z0-9_~-][A-Za-z0-9_.~-]*$/;

/** Whether a value can be a segment of a path, a folder and a part of a route name. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && NAME.test(value);
}

/** The name as part of a route name or a parameter: `rate-limits` becomes `rate_limits`. */
export function identifier(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_]/g, '_');
}

/** The name of one of a resource, for its parameter and its member routes: `replies` becomes `reply`. */
export function memberName(resource: string): string {
  return identifier(singular(resource));
}

/**
 * The name of the route to all of a resource, given the parts before the resource: `api_replies`. A resource whose name has no
 * singular of its own gets `_index`, as in Rails, because its member route has the plain name: `api_news_index`.
 */
export function collectionRouteName(before: readonly string[], resource: string): string {
  const name = identifier(resource);
  return routeName(before, name === memberName(resource) ? `${name}_index` : name);
}

/** The name of the route to one of a resource: `api_reply`. */
export function memberRouteName(before: readonly string[], resource: string): string {
  return routeName(before, memberName(resource));
}

/** The name of the route to a resource of which there is one. */
export function singleRouteName(before: readonly string[], resource: string): string {
  return routeName(before, identifier(resource));
}

function routeName(before: readonly string[], last: string): string {
  return [...before, last].join('_');
}

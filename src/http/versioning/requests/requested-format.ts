import { type VersionedPath, isParameter } from '../routes/versioned-path';

/**
 * Whether the path of a request ends with a format that the API does not have, as in `/foo.xyz`. Such a path is not one of the
 * API; but where it ends with a parameter, as `/foo/a.xyz` does, the dot belongs to the value.
 *
 * @param requestPath matched by the pattern of `path`
 */
export function hasUnknownFormat(path: VersionedPath, formats: ReadonlySet<string>, requestPath: string): boolean {
  const last = path.segments.at(-1)!;
  if (isParameter(last)) return false;
  const requested = requestPath.endsWith('/') ? requestPath.slice(0, -1) : requestPath;
  const lastRequested = requested.slice(requested.lastIndexOf('/') + 1);
  // The router has compared the segment itself, perhaps in another case.
  return lastRequested.length > last.length && !formats.has(lastRequested.slice(last.length + 1));
}

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

/** Parameters as the router has them: `/foo/a.b` gives the id `a` and the format `b`. */
export type PathParams = Record<string, string | undefined>;

/** Puts an unknown format back to the value that it was cut from: `/foo/a.b` gives the id `a.b`. */
export function restoreDots(params: PathParams, path: VersionedPath, formats: ReadonlySet<string>): void {
  const { format } = params;
  const last = path.segments.at(-1)!;
  if (format === undefined || formats.has(format) || !isParameter(last)) return;
  const name = last.slice(1);
  params[name] = `${params[name]}.${format}`;
  delete params.format;
}

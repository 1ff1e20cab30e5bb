import { type Lookup, type PathResolver, identityOf } from './symlink-trail';

/** What to watch in one folder. */
export interface WatchPoint {
  /** Identifies the folder that was found at the path: another folder at the same path needs a watch of its own. */
  readonly identity: string;
  /** The names whose changes matter; undefined when every name matters. */
  readonly names: ReadonlySet<string> | undefined;
}

/** Watch points by the real path of the folder. */
export type WatchPoints = ReadonlyMap<string, WatchPoint>;

/** Folders to watch for more than the names of look-ups. */
export interface WatchedFolders {
  readonly paths: readonly string[];
  /** The names whose changes matter in them; undefined when every name matters. */
  readonly names: readonly string[] | undefined;
}

/** The watch points that cover these look-ups and folders. Folders that do not exist are left out. */
export async function watchPointsFor(
  resolver: PathResolver,
  lookups: readonly Lookup[],
  folders: WatchedFolders = { paths: [], names: undefined },
): Promise<WatchPoints> {
  const namesByFolder = new Map<string, Set<string> | undefined>();
  for (const folder of folders.paths) namesByFolder.set(folder, folders.names && new Set(folders.names));
  for (const { folder, name } of lookups) {
    if (namesByFolder.has(folder)) namesByFolder.get(folder)?.add(name);
    else namesByFolder.set(folder, new Set([name]));
  }
  const points = new Map<string, WatchPoint>();
  await Promise.all(
    Array.from(namesByFolder, async ([folder, names]) => {
      const entry = await resolver.lstat(folder);
      if (typeof entry !== 'string') points.set(folder, { identity: identityOf(entry), names });
    }),
  );
  return points;
}

import type { BigIntStats } from 'node:fs';
import { readlink, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type ListingOptions, type RuleFiles, listRuleFiles } from './list-rule-files';
import { type TrailEntry, type Lookup, Tracker, codeOf, identityOf, pathOf } from '../watching/symlink-trail';
import type { WatchPoint, WatchPoints } from '../watching/folder-watches';

/** The link that a Kubernetes ConfigMap mount swaps: every visible file is a link through it. */
const DATA_LINK = '..data';

export interface SurveyOptions extends ListingOptions {
  /** Whether to look at each file, too, and to watch them: what can change without any folder or link being switched. */
  readonly files: boolean;
}

/** A file as it was seen, nothing read yet. */
export interface SeenFile {
  /** Device and inode number: another file in the same place has others. */
  readonly inode: string;
  /** Equal as long as nothing happens to the file. */
  readonly stamp: string;
}

/** How a rule folder stood at one moment, nothing read yet. */
export interface Survey {
  /** The real path of the rule folder; the path as given when it leads to none. */
  readonly folder: string;
  /** Where the rules really are, for people: that folder, or the one that the `..data` link in it leads to. */
  readonly place: string;
  /** Equal as long as no link and no folder on the way to the rules was switched. */
  readonly identity: string;
  /** Equal as long as the identity is and, where files were looked at, nothing happened to any of them. */
  readonly stamp: string;
  readonly listing: RuleFiles;
  /**
   * Whether something happened to a file only just now: the same could happen once more with the stamp staying the same, as
   * a file system's clock ticks in milliseconds.
   */
  readonly isFresh: boolean;
  /** By path, each file that could be seen; empty unless files were looked at. */
  readonly files: ReadonlyMap<string, SeenFile>;
  readonly watchPoints: WatchPoints;
  /** Why the rules cannot be read; undefined when they can. */
  readonly obstacle: string | undefined;
}

const NO_FILES: RuleFiles = { files: [], links: [], others: [], linkedFolders: [], folders: [] };

/** Looks at a rule folder, at the way that leads there, and at what is in it. Never fails: what is in the way is part of it. */
export async function survey(dir: string, options: SurveyOptions): Promise<Survey> {
  const tracker = new Tracker();
  const trail = await tracker.follow(dir);
  const lookups: Lookup[] = [...trail.lookups];
  async function blocked(identity: string, obstacle: string, watched: readonly string[]): Promise<Survey> {
    return {
      folder: dir,
      place: dir,
      identity,
      stamp: `${identity}\n${obstacle}`,
      listing: NO_FILES,
      isFresh: false,
      files: new Map(),
      watchPoints: await watchPoints(tracker, lookups, watched, undefined),
      obstacle,
    };
  }

  if (trail.obstacle !== undefined) return blocked('', missing(dir, trail.obstacle), []);
  const folder = trail.real ?? dir;
  const entry = await tracker.entry(folder);
  if (typeof entry === 'string') return blocked('', missing(dir, { path: folder, code: entry }), []);
  const own = `${folder} ${identityOf(entry)}`;
  if (!entry.isDirectory()) return blocked(own, `the rule folder ${dir} is not a folder`, []);

  let listing: RuleFiles;
  try {
    listing = await listRuleFiles(folder, options);
  } catch (error) {
    const path = pathOf(error) ?? folder;
    // What is in the way can go without a change of any name: those folders are watched themselves.
    return blocked(own, `the rule folder ${dir} cannot be read: ${because(path, codeOf(error))}`, [
      dirname(path),
      path,
    ]);
  }

  const folders = listing.folders.map((path) => join(folder, path));
  const dataLinks = await Promise.all(folders.map((path) => readlink(join(path, DATA_LINK)).catch(() => '')));
  const identity = [
    own,
    ...listing.folders.flatMap((path, i) => (dataLinks[i] ? [`${path}/${dataLinks[i]}`] : [])),
  ].join('\n');
  const files = new Map<string, SeenFile>();
  let stamp = identity;
  let newest = 0n;
  if (options.files) {
    const entries = await Promise.all(listing.files.map((path) => lookAt(join(folder, path))));
    for (const [i, path] of listing.files.entries()) {
      const seen = entries[i] ?? 'EIO';
      if (typeof seen === 'string') {
        stamp += `\n${path} ${seen}`;
        continue;
      }
      const file = { inode: `${seen.dev}:${seen.ino}`, stamp: stampOf(seen) };
      files.set(path, file);
      stamp += `\n${path} ${file.inode} ${file.stamp}`;
      if (seen.ctimeNs > newest) newest = seen.ctimeNs;
    }
    const trails = await Promise.all(listing.links.map((path) => tracker.follow(join(folder, path))));
    for (const { lookups: way } of trails) lookups.push(...way);
  }
  return {
    folder,
    place: resolve(folder, dataLinks[0] ?? ''),
    identity,
    stamp,
    listing,
    isFresh: newest > BigInt(Date.now() - FRESH_MILLISECONDS) * NANOSECONDS_PER_MILLISECOND,
    files,
    watchPoints: await watchPoints(tracker, lookups, folders, options.files ? undefined : new Set([DATA_LINK])),
    obstacle: undefined,
  };
}

/** Longer than the tick of any file system's clock in use: 10 ms on Linux without high resolution timers. */
const FRESH_MILLISECONDS = 50;
const NANOSECONDS_PER_MILLISECOND = 1_000_000n;

/** A file, links followed; or the code of the error that looking at it gave. */
function lookAt(path: string): Promise<TrailEntry> {
  return stat(path, { bigint: true }).catch(codeOf);
}

/** The time of change is part of it: it alone tells of contents exchanged with size and time of modification kept. */
function stampOf({ size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${size}:${mtimeNs}:${ctimeNs}`;
}

async function watchPoints(
  tracker: Tracker,
  lookups: readonly Lookup[],
  folders: readonly string[],
  namesInFolders: ReadonlySet<string> | undefined,
): Promise<WatchPoints> {
  const names = new Map<string, Set<string> | undefined>();
  for (const folder of folders) names.set(folder, namesInFolders && new Set(namesInFolders));
  for (const { folder, name } of lookups) {
    if (names.has(folder)) names.get(folder)?.add(name);
    else names.set(folder, new Set([name]));
  }
  const points = new Map<string, WatchPoint>();
  await Promise.all(
    Array.from(names, async ([folder, wanted]) => {
      const entry = await tracker.entry(folder);
      if (typeof entry !== 'string') points.set(folder, { identity: identityOf(entry), names: wanted });
    }),
  );
  return points;
}

function missing(dir: string, { path, code }: { path: string; code: string }): string {
  if (code !== 'ENOENT' && code !== 'ENOTDIR')
    return `the rule folder ${dir} cannot be reached: ${because(path, code)}`;
  return `the rule folder ${dir} does not exist${path === dir ? '' : `: there is no ${path}`}`;
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  ENOENT: 'it does not exist',
  ELOOP: 'its links lead in a circle',
};

/** Says what is wrong with a path, for example `permission denied (EACCES) at /srv/rules`. */
export function because(path: string, code: string): string {
  return `${REASONS[code] ?? 'the system says no'} (${code}) at ${path}`;
}

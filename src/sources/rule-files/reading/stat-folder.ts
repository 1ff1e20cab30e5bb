import type { BigIntStats } from 'node:fs';
import { readlink, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { codeOf, pathOf } from '../../watching/fs-error';
import {
  type PathError,
  PathResolver,
  type ResolvedTrail,
  type StatResult,
  identityOf,
} from '../../watching/symlink-trail';
import { type WatchPoints, watchPointsFor } from '../../watching/watch-points';
import { FOLDER_EXCESSES } from '../../../rules/files/size-limits';
import { FolderTooLarge, type ListingOptions, type RuleFiles, listRuleFiles } from './list-rule-files';
import { mapInBatches } from './map-in-batches';

/** The link that a Kubernetes ConfigMap mount swaps: every visible file is a link through it. */
const DATA_LINK = '..data';

export interface StatOptions extends ListingOptions {
  /** Whether to stat and watch each file too, which detects changes that switch no folder and no link. */
  readonly files: boolean;
}

/** What identifies the state of a file without reading it. */
export interface FileStat {
  /** Device and inode number: they differ when another file takes the same path. */
  readonly inode: string;
  /** Unchanged as long as the file is. */
  readonly stamp: string;
  /** In bytes. */
  readonly size: number;
  /**
   * Whether it was renamed, or a link switched to it, after it was last written. A file that is being written at its place has
   * the same times of change and modification; one that was renamed within the same step of the clock has them, too.
   */
  readonly wasMoved: boolean;
}

/** The state of a rule folder at one moment, without the contents of its files. */
export interface FolderStat {
  /** The real path of the rule folder; the path as given when it cannot be resolved. */
  readonly folder: string;
  /** The path that holds the rules, for messages: the rule folder, or the one that its `..data` link leads to. */
  readonly rulesPath: string;
  /**
   * Unchanged as long as no link and no folder on the path to the rules is switched, and the files that are visible in a folder
   * with a `..data` link have the same names.
   */
  readonly identity: string;
  /** Unchanged as long as the identity is and, where the files were included, every file is. */
  readonly stamp: string;
  readonly listing: RuleFiles;
  /**
   * Whether a file was changed so recently that another change could leave its stamp as it is: the clock of a file system
   * advances in steps of milliseconds.
   */
  readonly hasRecentChange: boolean;
  /** By path, each file that could be accessed; empty unless the files were included. */
  readonly files: ReadonlyMap<string, FileStat>;
  readonly watchPoints: WatchPoints;
  /** Why the rules cannot be read; undefined when they can. */
  readonly error: string | undefined;
}

/** A rule folder that could be listed. */
interface ListedFolder {
  readonly folder: string;
  /** Identifies the folder itself. */
  readonly identity: string;
  readonly listing: RuleFiles;
  /** How the path of the settings led to the folder. */
  readonly trail: ResolvedTrail;
  readonly resolver: PathResolver;
}

const NO_FILES: RuleFiles = { files: [], links: [], others: [], linkedFolders: [], folders: [] };

/** Examines a rule folder, the path that leads to it, and its contents. Never fails: an error is part of the result. */
export async function statFolder(dir: string, options: StatOptions): Promise<FolderStat> {
  const resolver = new PathResolver();
  const trail = await resolver.resolve(dir);
  const { lookups } = trail;
  async function unreadable(identity: string, error: string, folders: readonly string[] = []): Promise<FolderStat> {
    return {
      folder: dir,
      rulesPath: dir,
      identity,
      stamp: `${identity}\n${error}`,
      listing: NO_FILES,
      hasRecentChange: false,
      files: new Map(),
      watchPoints: await watchPointsFor(resolver, lookups, { paths: folders, names: undefined }),
      error,
    };
  }

  if (trail.error !== undefined) return unreadable('', unreachable(dir, trail.error));
  const folder = trail.real;
  const entry = await resolver.lstat(folder);
  if (typeof entry === 'string') return unreadable('', unreachable(dir, { path: folder, code: entry }));
  const identity = `${folder} ${identityOf(entry)}`;
  if (!entry.isDirectory()) return unreadable(identity, `the rule folder ${dir} is not a folder`);
  let listing: RuleFiles;
  try {
    listing = await listRuleFiles(folder, options);
  } catch (error) {
    if (error instanceof FolderTooLarge)
      return unreadable(identity, tooLarge(dir, error.excess), [dirname(folder), folder]);
    const path = pathOf(error) ?? folder;
    // The cause can disappear without a change of any name, so these folders are watched themselves.
    const folders = [dirname(path), path];
    return unreadable(
      identity,
      `the rule folder ${dir} cannot be read: ${pathErrorText(path, codeOf(error))}`,
      folders,
    );
  }
  return statContents({ folder, identity, listing, trail, resolver }, options.files);
}

async function statContents(found: ListedFolder, includesFiles: boolean): Promise<FolderStat> {
  const { folder, listing, resolver } = found;
  const folders = listing.folders.map((path) => join(folder, path));
  const dataLinks = await mapInBatches(folders, (path) => readlink(join(path, DATA_LINK)).catch(() => ''));
  const mounts = new Set(listing.folders.filter((_, i) => dataLinks[i]));
  const identity = [
    found.identity,
    ...listing.folders.flatMap((path, i) => (dataLinks[i] ? [`${path}/${dataLinks[i]}`] : [])),
    ...listing.links.filter((path) => mounts.has(folderOf(path))),
  ].join('\n');
  const trails = includesFiles ? await mapInBatches(listing.links, (path) => resolver.resolve(join(folder, path))) : [];
  const switches = new Map(listing.links.map((path, i) => [path, trails[i]?.switchedAt ?? 0n]));
  const { files, stamps, newestChange } = includesFiles ? await statFiles(found, switches) : NO_FILE_STATS;
  const lookups = [found.trail, ...trails].flatMap((trail) => trail.lookups);
  const names = includesFiles ? undefined : [DATA_LINK];
  // The kubelet creates and removes visible links after it has swapped `..data`: their names are not known before.
  const mountPaths = Array.from(mounts, (path) => join(folder, path));
  return {
    folder,
    rulesPath: resolve(folder, dataLinks[0] ?? ''),
    identity,
    stamp: [identity, ...stamps].join('\n'),
    listing,
    hasRecentChange: newestChange > BigInt(Date.now() - RECENT_MILLISECONDS) * NANOSECONDS_PER_MILLISECOND,
    files,
    watchPoints: new Map([
      ...(await watchPointsFor(resolver, lookups, { paths: folders, names })),
      ...(await watchPointsFor(resolver, [], { paths: mountPaths, names: undefined })),
    ]),
    error: undefined,
  };
}

/** The folder of a path of the listing: '' is the rule folder itself. */
function folderOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('/'), 0));
}

/** Longer than one step of any file system's clock in use: 10 ms on Linux without high resolution timers. */
const RECENT_MILLISECONDS = 50;
const NANOSECONDS_PER_MILLISECOND = 1_000_000n;

interface FileStats {
  readonly files: ReadonlyMap<string, FileStat>;
  readonly stamps: readonly string[];
  /** Nanoseconds since 1970. */
  readonly newestChange: bigint;
}

const NO_FILE_STATS: FileStats = { files: new Map(), stamps: [], newestChange: 0n };

/** @param switches for each file that is a link: when it, or one that it leads through, was switched */
async function statFiles(
  { folder, listing, trail }: ListedFolder,
  switches: ReadonlyMap<string, bigint>,
): Promise<FileStats> {
  const paths = listing.files;
  const files = new Map<string, FileStat>();
  const stamps: string[] = [];
  let newestChange = 0n;
  const results = await mapInBatches(paths, (path) => statOrCode(join(folder, path)));
  for (const [i, path] of paths.entries()) {
    const result = results[i] ?? 'EIO';
    if (typeof result === 'string') {
      stamps.push(`${path} ${result}`);
      continue;
    }
    const { dev, ino, size, mtimeNs, ctimeNs } = result;
    const wasMoved = ctimeNs > mtimeNs || trail.switchedAt >= mtimeNs || (switches.get(path) ?? 0n) >= mtimeNs;
    const file = { inode: `${dev}:${ino}`, stamp: stampOf(result), size: Number(size), wasMoved };
    files.set(path, file);
    stamps.push(`${path} ${file.inode} ${file.stamp}`);
    if (ctimeNs > newestChange) newestChange = ctimeNs;
  }
  return { files, stamps, newestChange };
}

/** Follows links. */
function statOrCode(path: string): Promise<StatResult> {
  return stat(path, { bigint: true }).catch(codeOf);
}

/** Includes the change time: it alone shows that contents were exchanged while size and modification time were kept. */
function stampOf({ size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${size}:${mtimeNs}:${ctimeNs}`;
}

/** Describes a rule folder that exceeds a limit. */
export function tooLarge(dir: string, excess: keyof typeof FOLDER_EXCESSES): string {
  return `the rule folder ${dir} ${FOLDER_EXCESSES[excess]}`;
}

function unreachable(dir: string, { path, code }: PathError): string {
  if (code !== 'ENOENT' && code !== 'ENOTDIR')
    return `the rule folder ${dir} cannot be reached: ${pathErrorText(path, code)}`;
  return `the rule folder ${dir} does not exist${path === dir ? '' : `: there is no ${path}`}`;
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  ENOENT: 'it does not exist',
  ELOOP: 'its symbolic links form a loop',
  EINVAL: 'it is a pipe, a socket or a device',
};

/** Describes a file system's error, for example `permission denied (EACCES) at /srv/rules`. */
export function pathErrorText(path: string, code: string): string {
  return `${REASONS[code] ?? 'file system error'} (${code}) at ${path}`;
}

import { opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  FOLDER_EXCESSES,
  type FolderExcess,
  MAX_ENTRIES,
  MAX_FILES,
  MAX_FOLDERS,
} from '../../../rules/files/size-limits';
import { mapInBatches } from './map-in-batches';

/** The contents of a rule folder. Paths are relative to it, with `/`; each list is sorted. */
export interface RuleFiles {
  /** The files to read: `*.yaml` and `*.yml`, including links to files and links whose target cannot be seen. */
  readonly files: readonly string[];
  /** Those of `files` that are links. */
  readonly links: readonly string[];
  /** Every other regular file, and links to such files. They are not read. */
  readonly others: readonly string[];
  /** Links to folders. They are not followed. */
  readonly linkedFolders: readonly string[];
  /** The folders that were listed; '' is the rule folder itself. */
  readonly folders: readonly string[];
}

export interface ListingOptions {
  /** Leave out files and folders whose name begins with a dot (RUNTIME_IGNOREDOTFILES). */
  readonly ignoreDotFiles: boolean;
}

type Listing = Record<keyof RuleFiles, string[]>;

/** A recursive listing in progress. */
interface Walk {
  /** The rule folder. */
  readonly dir: string;
  readonly options: ListingOptions;
  readonly listing: Listing;
  readonly links: string[];
  /** Everything that was found, whether it is listed or not. */
  entries: number;
}

/** A folder with more files or subfolders than can be examined without delaying decisions. */
export class FolderTooLarge extends Error {
  override readonly name = 'FolderTooLarge';

  constructor(readonly excess: FolderExcess) {
    super(`it ${FOLDER_EXCESSES[excess]}`);
  }
}

const RULE_FILE = /\.ya?ml$/;
/** The folder of a file system check in the root of a volume, for which only root has permissions: it holds no rules. */
const LOST_AND_FOUND = 'lost+found';
/** Entries that are listed per call of the file system. */
const ENTRIES_AT_ONCE = 256;

/**
 * Finds the rule files of a folder and its subfolders. Names that begin with `..` are always skipped: a Kubernetes ConfigMap
 * mount keeps the targets of its visible links there. Links to folders are not followed, except `dir` itself. Folders named
 * `lost+found` are skipped, too.
 *
 * @throws the error of the file system (`ENOENT`, `EACCES`, ...) when a folder cannot be listed
 * @throws FolderTooLarge
 */
export async function listRuleFiles(dir: string, options: ListingOptions): Promise<RuleFiles> {
  const listing: Listing = { files: [], links: [], others: [], linkedFolders: [], folders: [] };
  const walk: Walk = { dir, options, listing, links: [], entries: 0 };
  // One folder at a time, because each one holds a file descriptor.
  const pending = [''];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop())
    await listFolder(walk, folder, pending);
  await mapInBatches(walk.links, (path) => listLink(walk, path));
  checkSize(walk);
  for (const paths of Object.values<string[]>(listing)) paths.sort();
  return listing;
}

/** @param subfolders receives those that are to be listed, too */
async function listFolder(walk: Walk, folder: string, subfolders: string[]): Promise<void> {
  const { dir, options, listing } = walk;
  const entries = await opendir(join(dir, folder), { bufferSize: ENTRIES_AT_ONCE });
  listing.folders.push(folder);
  for await (const entry of entries) {
    walk.entries += 1;
    checkSize(walk);
    if (entry.name.startsWith(options.ignoreDotFiles ? '.' : '..')) continue;
    if (entry.name === LOST_AND_FOUND && entry.isDirectory()) continue;
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) subfolders.push(path);
    else if (entry.isSymbolicLink()) walk.links.push(path);
    else if (entry.isFile()) (RULE_FILE.test(path) ? listing.files : listing.others).push(path);
    // The rest are sockets, pipes and devices: reading one could block forever.
  }
}

function checkSize({ listing, entries }: Walk): void {
  if (listing.files.length > MAX_FILES) throw new FolderTooLarge('files');
  // The rule folder itself is listed, too.
  if (listing.folders.length > MAX_FOLDERS + 1) throw new FolderTooLarge('folders');
  if (entries > MAX_ENTRIES) throw new FolderTooLarge('entries');
}

async function listLink({ dir, listing }: Walk, path: string): Promise<void> {
  const isRuleFile = RULE_FILE.test(path);
  // A rule file whose target cannot be seen is listed, so that reading it reports the error instead of dropping its rules.
  const target = await stat(join(dir, path)).catch(() => undefined);
  if (target === undefined ? isRuleFile : target.isFile() && isRuleFile) {
    listing.files.push(path);
    listing.links.push(path);
  } else if (target?.isFile()) {
    listing.others.push(path);
  } else if (target?.isDirectory()) {
    listing.linkedFolders.push(path);
  }
}

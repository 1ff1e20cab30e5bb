import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

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
}

const RULE_FILE = /\.ya?ml$/;

/**
 * Finds the rule files of a folder and its subfolders. Names that begin with `..` are always skipped: a Kubernetes ConfigMap
 * mount keeps the targets of its visible links there. Links to folders are not followed, except `dir` itself.
 *
 * @throws the error of the file system (`ENOENT`, `EACCES`, ...) when a folder cannot be listed.
 */
export async function listRuleFiles(dir: string, options: ListingOptions): Promise<RuleFiles> {
  const listing: Listing = { files: [], links: [], others: [], linkedFolders: [], folders: [] };
  await listFolder({ dir, options, listing }, '');
  for (const paths of Object.values<string[]>(listing)) paths.sort();
  return listing;
}

async function listFolder(walk: Walk, folder: string): Promise<void> {
  const { dir, options, listing } = walk;
  const entries = await readdir(join(dir, folder), { withFileTypes: true });
  listing.folders.push(folder);
  const pending: Promise<void>[] = [];
  for (const entry of entries) {
    if (entry.name.startsWith(options.ignoreDotFiles ? '.' : '..')) continue;
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) pending.push(listFolder(walk, path));
    else if (entry.isSymbolicLink()) pending.push(listLink(walk, path));
    else if (entry.isFile()) (RULE_FILE.test(path) ? listing.files : listing.others).push(path);
    // The rest are sockets, pipes and devices: reading one could block forever.
  }
  await Promise.all(pending);
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

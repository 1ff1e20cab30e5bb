import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** What a rule folder holds. Paths are relative to it, with `/`, each list sorted. */
export interface RuleFiles {
  /** The files to read: `*.yaml` and `*.yml`, links to files among them. A link whose target cannot be seen is listed too. */
  readonly files: readonly string[];
  /** Those of `files` that are links. */
  readonly links: readonly string[];
  /** Every other regular file, and links to such: they are not read. */
  readonly others: readonly string[];
  /** Links to folders: they are not followed. */
  readonly linkedFolders: readonly string[];
  /** The folders that were looked into: '' is the rule folder itself. */
  readonly folders: readonly string[];
}

export interface ListingOptions {
  /** Leave out files and folders whose name begins with a dot (RUNTIME_IGNOREDOTFILES). */
  readonly ignoreDotFiles: boolean;
}

type Listing = Record<keyof RuleFiles, string[]>;

const RULE_FILE = /\.ya?ml$/;

/**
 * Finds the rule files of a folder and its subfolders. Names that begin with `..` are never looked at: that is where a
 * Kubernetes ConfigMap mount keeps what its visible links lead to. Links to folders are not followed, `dir` itself excepted.
 *
 * @throws the error of the file system (`ENOENT`, `EACCES`, ...) when a folder cannot be listed.
 */
export async function listRuleFiles(dir: string, options: ListingOptions): Promise<RuleFiles> {
  const listing: Listing = { files: [], links: [], others: [], linkedFolders: [], folders: [] };
  await listFolder(dir, '', options, listing);
  for (const paths of Object.values<string[]>(listing)) paths.sort();
  return listing;
}

async function listFolder(dir: string, folder: string, options: ListingOptions, listing: Listing): Promise<void> {
  const entries = await readdir(join(dir, folder), { withFileTypes: true });
  listing.folders.push(folder);
  const deeper: Promise<void>[] = [];
  for (const entry of entries) {
    if (entry.name.startsWith(options.ignoreDotFiles ? '.' : '..')) continue;
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) deeper.push(listFolder(dir, path, options, listing));
    else if (entry.isSymbolicLink()) deeper.push(listLink(dir, path, listing));
    else if (entry.isFile()) (RULE_FILE.test(path) ? listing.files : listing.others).push(path);
    // What is left are sockets, pipes and devices, which reading could block on for ever.
  }
  await Promise.all(deeper);
}

async function listLink(dir: string, path: string, listing: Listing): Promise<void> {
  const isRuleFile = RULE_FILE.test(path);
  // A rule file whose target is out of sight must not vanish without a word: reading it says what is wrong.
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

import { type BigIntStats, type Dirent, statSync } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { FOLDER_EXCESSES, type FolderExcess, MAX_ENTRIES, MAX_FILES, MAX_FOLDERS } from '../../rules/files/size-limits';
import { codeOf } from '../../text/thrown';

export interface ListedFile {
  /** Relative to the rule folder, with `/`. */
  readonly path: string;
  readonly isLink: boolean;
  /** In bytes; 0 when the file cannot be accessed. */
  readonly size: number;
  /** Unchanged as long as the file is; the code of the error when it cannot be accessed. */
  readonly stamp: string;
}

/** The contents of a rule folder. Paths are relative to it, with `/`; each list is sorted. */
export interface RuleFiles {
  /** The files to read: `*.yaml` and `*.yml`, including links to files and links whose target cannot be seen. */
  readonly files: readonly ListedFile[];
  /** Every other regular file, and links to such files. They are not read. */
  readonly others: readonly string[];
  /** Links to folders. They are not followed. */
  readonly linkedFolders: readonly string[];
  /** The folders that have a link {@link DATA_LINK}; '' is the rule folder itself. */
  readonly mounts: readonly string[];
}

/** A folder with more files or subfolders than can be examined without delaying decisions. */
export class FolderTooLarge extends Error {
  override readonly name = 'FolderTooLarge';

  constructor(readonly excess: FolderExcess) {
    super(`it ${FOLDER_EXCESSES[excess]}`);
  }
}

/** The link that a Kubernetes ConfigMap mount swaps: every visible file is a link through it. */
export const DATA_LINK = '..data';
const RULE_FILE = /\.ya?ml$/;
/**
 * The folder of a file system check in the root of a volume, for which only root has permissions: it holds no rules.
 */
const LOST_AND_FOUND = 'lost+found';
/** The names that one warning lists. */
const MAX_NAMES = 10;
/** Entries that are listed per call of the file system, and per turn of the event loop. */
const ENTRIES_AT_ONCE = 256;
/** Files that are examined per turn of the event loop: less than half a millisecond. */
const STATS_PER_TURN = 50;

/**
 * Finds the rule files of a folder and its subfolders. Names that begin with `..` are always skipped: a Kubernetes
 * ConfigMap mount keeps the targets of its visible links there. Links to folders are not followed, except `dir` itself.
 * Folders named `lost+found` are skipped, too.
 *
 * @param ignoresDotFiles whether files and folders whose name begins with a dot are left out (RUNTIME_IGNOREDOTFILES)
 * @throws the error of the file system (`ENOENT`, `EACCES`, ...) when a folder cannot be listed
 * @throws FolderTooLarge
 */
export async function listRuleFiles(dir: string, ignoresDotFiles: boolean): Promise<RuleFiles> {
  const [files, others, linkedFolders, mounts]: [ListedFile[], string[], string[], string[]] = [[], [], [], []];
  /** Rule files, and all links. */
  const candidates: { readonly path: string; readonly isLink: boolean }[] = [];
  const folders = [''];
  let entries = 0;
  let ruleFiles = 0;
  function add(folder: string, entry: Dirent): void {
    const { name } = entry;
    const isLink = entry.isSymbolicLink();
    if ((entries += 1) > MAX_ENTRIES) throw new FolderTooLarge('entries');
    if (isLink && name === DATA_LINK) mounts.push(folder);
    if (name.startsWith(ignoresDotFiles ? '.' : '..')) return;
    if (name === LOST_AND_FOUND && entry.isDirectory()) return;
    const path = folder === '' ? name : `${folder}/${name}`;
    const isRuleFile = RULE_FILE.test(name) && (isLink || entry.isFile());
    if (isRuleFile && (ruleFiles += 1) > MAX_FILES) throw new FolderTooLarge('files');
    if (isRuleFile || isLink) candidates.push({ path, isLink });
    // The rule folder itself is in the list, too.
    else if (entry.isDirectory() && folders.push(path) > MAX_FOLDERS + 1) throw new FolderTooLarge('folders');
    // The rest are sockets, pipes and devices: reading one could block forever.
    else if (entry.isFile()) others.push(path);
  }
  // One folder at a time, because each one holds a file descriptor.
  for (const folder of folders) {
    // Opening waits for a network file system without blocking decisions. What follows is synchronous, which takes half
    // the CPU time.
    const listed = await opendir(join(dir, folder), { bufferSize: ENTRIES_AT_ONCE });
    try {
      for (let entry = listed.readSync(); entry !== null; entry = listed.readSync()) {
        add(folder, entry);
        if (entries % ENTRIES_AT_ONCE === 0) await setImmediate();
      }
    } finally {
      listed.closeSync();
    }
  }
  for (const [i, { path, isLink }] of candidates.entries()) {
    if (i % STATS_PER_TURN === 0) await setImmediate();
    const stat = statOrCode(join(dir, path));
    // A rule file whose target cannot be seen is listed, so that reading it reports the error instead of dropping its
    // rules.
    if (typeof stat === 'string') {
      if (RULE_FILE.test(path)) files.push({ path, isLink, size: 0, stamp: stat });
    } else if (stat.isDirectory()) linkedFolders.push(path);
    else if (stat.isFile() && !RULE_FILE.test(path)) others.push(path);
    else if (stat.isFile()) files.push({ path, isLink, size: Number(stat.size), stamp: stampOf(stat) });
  }
  files.sort((one, other) => (one.path < other.path ? -1 : 1));
  return { files, others: others.sort(), linkedFolders: linkedFolders.sort(), mounts: mounts.sort() };
}

/** Follows links. */
function statOrCode(path: string): BigIntStats | string {
  try {
    return statSync(path, { bigint: true });
  } catch (error) {
    return codeOf(error);
  }
}

/** What the contents of a rule folder give reason to warn about, apart from the rules themselves: one sentence each. */
export function folderWarnings(dir: string, { files, others, linkedFolders }: RuleFiles): string[] {
  const warnings: string[] = [];
  if (files.length === 0) warnings.push(`the rule folder ${dir} has no rule files (*.yaml, *.yml): nothing is limited`);
  if (others.length > 0) warnings.push(`only *.yaml and *.yml are read in ${dir}, not ${namesOf(others)}`);
  if (linkedFolders.length > 0) warnings.push(`links to folders are not followed in ${dir}: ${namesOf(linkedFolders)}`);
  return warnings;
}

function namesOf(paths: readonly string[]): string {
  const leftOut = paths.length - MAX_NAMES;
  return paths.slice(0, MAX_NAMES).join(', ') + (leftOut > 0 ? ` and ${leftOut} more` : '');
}

/**
 * Identifies the state of a file without reading it. Includes the change time: it alone shows that contents were
 * exchanged while size and modification time were kept.
 */
function stampOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}

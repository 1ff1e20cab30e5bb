import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readlink, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { RuleFile } from '../../rules/files/read-rule-files';
import { FOLDER_EXCESSES, type FolderExcess, MAX_FILE_BYTES, MAX_TOTAL_BYTES } from '../../rules/files/size-limits';
import { readBoundedFile } from '../bounded-file';
import { codeOf } from '../../text/thrown';
import { DATA_LINK, FolderTooLarge, type RuleFiles, listRuleFiles } from './list-rule-files';

/** The state of a rule folder at one moment, without the contents of its files, for comparison with another one. */
interface FolderState {
  /**
   * Unchanged as long as no link and no folder on the path to the rules is switched, and the files that are visible in
   * a folder with a `..data` link have the same names.
   */
  readonly identity: string;
  /**
   * Unchanged as long as the identity and the sizes of all files are: not their times, for a file that is only touched
   * is complete.
   */
  readonly sizes: string;
  /** Unchanged as long as the identity and every file are. */
  readonly stamp: string;
}

/** A rule folder that was examined. */
export interface FolderLook extends FolderState {
  /** The real path of the rule folder. */
  readonly folder: string;
  /** The path that holds the rules, for messages: the rule folder, or the one that its `..data` link leads to. */
  readonly rulesPath: string;
  /** The targets of the `..data` links by folder. */
  readonly targets: ReadonlyMap<string, string>;
  /** Identifies the folder, also when it was removed and created again: its inode number may then be the same. */
  readonly inode: string;
  readonly listing: RuleFiles;
  readonly error?: undefined;
}

/**
 * What one look at a rule folder found; or one sentence that says why the rules cannot be read, which is its state as
 * well.
 */
export type Look = FolderLook | (FolderState & { readonly error: string });

/** All rule files of one moment: never some from before a switch and some from after it. */
export interface Snapshot {
  readonly files: readonly RuleFile[];
  /** Equal when the paths and contents of all files are. */
  readonly digest: string;
  readonly error?: undefined;
}

/** Files that are open at the same time. */
const PARALLEL_FILES = 32;
/** Bytes that are hashed per turn of the event loop: about a millisecond. */
const HASHED_PER_TURN = 1 << 20;
const NO_CONTENT = new Uint8Array();

/** Examines a rule folder, the path that leads to it, and its contents. Never fails: an error is part of the result. */
export async function lookAtFolder(dir: string, ignoresDotFiles: boolean): Promise<Look> {
  let folder: string;
  try {
    folder = await realpath(dir);
  } catch (error) {
    return failed(unreachable(dir, codeOf(error)));
  }
  try {
    const { dev, ino, birthtimeNs } = await stat(folder, { bigint: true });
    const listing = await listRuleFiles(folder, ignoresDotFiles);
    const { files, mounts } = listing;
    const targets = new Map<string, string>();
    for (const mount of mounts) targets.set(mount, await readlink(join(folder, mount, DATA_LINK)));
    const visible = files.filter(({ path, isLink }) => isLink && targets.has(folderOf(path)));
    const inode = `${dev}:${ino}:${birthtimeNs}`;
    const identity = [folder, inode, ...Array.from(targets).flat(), ...visible.map(({ path }) => path)].join('\n');
    const sizes = [identity, ...files.map(({ path, size }) => `${path} ${size}`)].join('\n');
    const stamp = [identity, ...files.map((file) => `${file.path} ${file.stamp}`)].join('\n');
    const rulesPath = resolve(folder, targets.get('') ?? '');
    return { folder, rulesPath, targets, inode, identity, sizes, stamp, listing };
  } catch (error) {
    if (error instanceof FolderTooLarge) return failed(tooLarge(dir, error.excess));
    const code = codeOf(error);
    if (code === 'ENOTDIR') return failed(`the rule folder ${dir} is not a folder`);
    const { path = folder } = Object(error) as { readonly path?: string };
    return failed(`the rule folder ${dir} cannot be read: ${pathErrorText(path, code)}`);
  }
}

function failed(error: string): Look {
  return { error, identity: error, sizes: error, stamp: error };
}

/** Reads the files that a look has found. They are of one moment if another look finds the same stamp. */
export async function readFiles({ folder, listing }: FolderLook): Promise<Snapshot | { readonly error: string }> {
  // The bytes of the files that are read: those above the limit of a file are not.
  const bytes = listing.files.reduce((sum, { size }) => sum + (size <= MAX_FILE_BYTES ? size : 0), 0);
  if (bytes > MAX_TOTAL_BYTES) return { error: tooLarge(folder, 'bytes') };
  const files: RuleFile[] = [];
  const hash = createHash('sha256');
  let total = 0;
  for (let first = 0; first < listing.files.length; first += PARALLEL_FILES) {
    const batch = listing.files.slice(first, first + PARALLEL_FILES);
    const contents = await Promise.allSettled(
      batch.map(({ path }) => readBoundedFile(join(folder, path), MAX_FILE_BYTES)),
    );
    for (const [i, { path }] of batch.entries()) {
      const read = contents[i];
      if (read?.status !== 'fulfilled') {
        const reason = pathErrorText(join(folder, path), codeOf(read?.reason));
        return { error: `the rule file ${path} cannot be read: ${reason}` };
      }
      const { content = NO_CONTENT, tooLarge: size } = read.value;
      files.push({ path, content, tooLarge: size });
      total += content.length;
      hash.update(`${path}\n${size ?? content.length}\n`);
      for (let at = 0; at < content.length; at += HASHED_PER_TURN) {
        if (at > 0) await setImmediate();
        hash.update(content.subarray(at, at + HASHED_PER_TURN));
      }
    }
    // The files have grown since their sizes were added up.
    if (total > MAX_TOTAL_BYTES) return { error: tooLarge(folder, 'bytes') };
  }
  return { files, digest: hash.digest('hex') };
}

/** The folder of a path of the listing: '' is the rule folder itself. */
function folderOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('/'), 0));
}

function tooLarge(dir: string, excess: FolderExcess): string {
  return `the rule folder ${dir} ${FOLDER_EXCESSES[excess]}`;
}

function unreachable(dir: string, code: string): string {
  const path = firstUnreachable(dir);
  if (code !== 'ENOENT' && code !== 'ENOTDIR') {
    return `the rule folder ${dir} cannot be reached: ${pathErrorText(path, code)}`;
  }
  return `the rule folder ${dir} does not exist${path === dir ? '' : `: there is nothing at ${path}`}`;
}

/** The first path on the way that leads to nothing: it does not exist, or its link leads nowhere. */
function firstUnreachable(path: string): string {
  const parent = dirname(path);
  return existsSync(parent) ? path : firstUnreachable(parent);
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  ENOENT: 'it does not exist',
  ELOOP: 'its symbolic links form a loop',
  EINVAL: 'it is a pipe, a socket or a device',
};

/** Describes a file system's error, for example `permission denied (EACCES) at /srv/rules`. */
function pathErrorText(path: string, code: string): string {
  return `${REASONS[code] ?? 'file system error'} (${code}) at ${path}`;
}

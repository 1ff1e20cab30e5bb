import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { RuleFile } from '../../../rules/files/read-rule-files';
import { MAX_FILE_BYTES, MAX_TOTAL_BYTES } from '../../../rules/files/size-limits';
import { readBoundedFile } from '../../bounded-file';
import { codeOf } from '../../watching/fs-error';
import { type FolderStat, pathErrorText, tooLarge } from './stat-folder';

/** All rule files of one moment: never some from before a switch and some from after it. */
export interface Snapshot {
  readonly files: readonly RuleFile[];
  /** Equal when the paths and contents of all files are. */
  readonly digest: string;
}

/** The outcome of reading the rules: a snapshot, or one sentence that says why there is none. */
export type SnapshotResult =
  | { readonly stat: FolderStat; readonly snapshot: Snapshot; readonly error?: undefined }
  | { readonly stat: FolderStat; readonly snapshot?: undefined; readonly error: string };

/** A ConfigMap that was swapped every 10 ms needed at most 9 attempts. */
const MAX_ATTEMPTS = 20;
/** Files that are open at the same time. */
const PARALLEL_FILES = 32;
/** Bytes that are hashed per turn of the event loop: about a millisecond. */
const HASHED_PER_TURN = 1 << 20;
const NO_CONTENT = new Uint8Array();

/**
 * Reads the rule files between two stats of the folder. When these differ, something was changed or switched while the files
 * were read, and all of them are read again.
 */
export async function readConsistently(statFolder: () => Promise<FolderStat>): Promise<SnapshotResult> {
  let before = await statFolder();
  for (let attempt = 1; before.error === undefined; attempt += 1) {
    const result = await readFiles(before);
    const after = await statFolder();
    if (after.stamp === before.stamp) return result;
    if (attempt === MAX_ATTEMPTS) {
      return { stat: after, error: `the rule files in ${after.rulesPath} change faster than they can be read` };
    }
    await setTimeout(attempt);
    before = await statFolder();
  }
  return { stat: before, error: before.error };
}

async function readFiles(stat: FolderStat): Promise<SnapshotResult> {
  if (bytesOf(stat) > MAX_TOTAL_BYTES) return { stat, error: tooLarge(stat.folder, 'bytes') };
  const files: RuleFile[] = [];
  const hash = createHash('sha256');
  let total = 0;
  const paths = stat.listing.files;
  for (let first = 0; first < paths.length; first += PARALLEL_FILES) {
    const batch = paths.slice(first, first + PARALLEL_FILES);
    const contents = await Promise.allSettled(
      batch.map((path) => readBoundedFile(join(stat.folder, path), MAX_FILE_BYTES)),
    );
    for (const [i, path] of batch.entries()) {
      const read = contents[i];
      if (read?.status !== 'fulfilled') return { stat, error: unreadable(stat, path, read?.reason) };
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
    if (total > MAX_TOTAL_BYTES) return { stat, error: tooLarge(stat.folder, 'bytes') };
  }
  return { stat, snapshot: { files, digest: hash.digest('hex') } };
}

/** The bytes of the files that are read, which those above the limit of a file are not. */
function bytesOf({ files }: FolderStat): number {
  let bytes = 0;
  for (const { size } of files.values()) if (size <= MAX_FILE_BYTES) bytes += size;
  return bytes;
}

function unreadable({ folder }: FolderStat, path: string, error: unknown): string {
  return `the rule file ${path} cannot be read: ${pathErrorText(join(folder, path), codeOf(error))}`;
}

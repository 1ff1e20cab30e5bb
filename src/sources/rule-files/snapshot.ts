import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { RuleFile } from '../../rules/files/read-rule-files';
import { type SeenFile, type Survey, because } from './stat-folder';
import { codeOf } from '../watching/symlink-trail';

/** What is remembered of a file when its content no longer is. */
export interface FileFacts extends SeenFile {
  /** Only white space, or nothing at all. */
  readonly isBlank: boolean;
}

/** All rule files of one moment: never some from before a switch and some from after it. */
export interface Snapshot {
  readonly files: readonly RuleFile[];
  readonly facts: ReadonlyMap<string, FileFacts>;
  /** Equal when the paths and contents of all files are. */
  readonly digest: string;
}

/** An attempt to read the rules: a snapshot of them, or one sentence that says why there is none. */
export type Reading =
  | { readonly survey: Survey; readonly snapshot: Snapshot; readonly obstacle?: undefined }
  | { readonly survey: Survey; readonly snapshot?: undefined; readonly obstacle: string };

/** A ConfigMap swapped every 10 ms needed 9 attempts at most. */
const MOST_ATTEMPTS = 20;
/** Files open at a time. */
const PARALLEL_FILES = 32;
/** Bytes hashed in one turn of the event loop: about a millisecond. */
const HASHED_AT_A_TIME = 1 << 20;

/**
 * Reads the rule files between two surveys that say the same; when they do not, something was changed or switched while
 * reading, and it is all read again.
 */
export async function readConsistently(look: () => Promise<Survey>): Promise<Reading> {
  let before = await look();
  for (let attempt = 1; before.obstacle === undefined; attempt += 1) {
    const reading = await readFiles(before);
    const after = await look();
    if (after.stamp === before.stamp) return reading;
    if (attempt === MOST_ATTEMPTS)
      return blocked(after, `the rule files in ${after.place} change faster than they can be read`);
    await setTimeout(attempt);
    before = await look();
  }
  return blocked(before, before.obstacle);
}

async function readFiles(seen: Survey): Promise<Reading> {
  const files: RuleFile[] = [];
  const facts = new Map<string, FileFacts>();
  const hash = createHash('sha256');
  const paths = seen.listing.files;
  for (let first = 0; first < paths.length; first += PARALLEL_FILES) {
    const batch = paths.slice(first, first + PARALLEL_FILES);
    const contents = await Promise.allSettled(batch.map((path) => readFile(join(seen.folder, path))));
    for (const [i, path] of batch.entries()) {
      const read = contents[i];
      if (read?.status !== 'fulfilled') return blocked(seen, unreadable(seen, path, read?.reason));
      const content = read.value;
      files.push({ path, content });
      const { inode, stamp } = seen.files.get(path) ?? NOT_SEEN;
      facts.set(path, { inode, stamp, isBlank: !content.some((byte) => byte > SPACE) });
      hash.update(`${path}\n${content.length}\n`);
      for (let at = 0; at < content.length; at += HASHED_AT_A_TIME) {
        if (at > 0) await setImmediate();
        hash.update(content.subarray(at, at + HASHED_AT_A_TIME));
      }
    }
  }
  return { survey: seen, snapshot: { files, facts, digest: hash.digest('hex') } };
}

const SPACE = 0x20;
const NOT_SEEN = { inode: '', stamp: '' };

function unreadable({ folder }: Survey, path: string, error: unknown): string {
  return `the rule file ${path} cannot be read: ${because(join(folder, path), codeOf(error))}`;
}

function blocked(seen: Survey, obstacle: string): Reading {
  return { survey: seen, obstacle };
}

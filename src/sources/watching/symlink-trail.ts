import type { BigIntStats } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf } from './fs-error';

/** A name that was looked up in a real folder while a path was resolved. */
export interface Lookup {
  readonly folder: string;
  readonly name: string;
}

/** How a path resolves in the file system, symbolic links included. */
export type SymlinkTrail = ResolvedTrail | BrokenTrail;

interface Trail {
  /** Every look-up, up to and including one that failed: a change of any of them can make the path lead elsewhere. */
  readonly lookups: readonly Lookup[];
  /** When the last of the links on the path was created or renamed: nanoseconds since 1970, 0 without links. */
  readonly switchedAt: bigint;
}

/** A path that leads to something. */
export interface ResolvedTrail extends Trail {
  /** The real path, without links. */
  readonly real: string;
  readonly error?: undefined;
}

interface BrokenTrail extends Trail {
  readonly error: PathError;
}

/** A path that cannot be accessed, and why: `ENOENT`, `EACCES`, `ELOOP`, ... */
export interface PathError {
  readonly path: string;
  readonly code: string;
}

/** What `stat` or `lstat` returned, or the code of the error that it failed with. */
export type StatResult = BigIntStats | string;

/** The limit of the Linux kernel: a path with more links fails with `ELOOP`. */
const MAX_LINKS = 40;

/**
 * Resolves paths one name at a time, which records every look-up on the way. Results are cached, so that paths with a common
 * prefix cost little: use an instance only for one moment.
 */
export class PathResolver {
  readonly #entries = new Map<string, Promise<StatResult>>();
  readonly #targets = new Map<string, Promise<string>>();

  /** The entry itself, not the target of a link. */
  lstat(path: string): Promise<StatResult> {
    return cached(this.#entries, path, () => lstat(path, { bigint: true }).catch(codeOf));
  }

  /** @param path an absolute path */
  async resolve(path: string): Promise<SymlinkTrail> {
    const lookups: Lookup[] = [];
    const remaining = path.split('/').reverse();
    let real = '/';
    let links = 0;
    let switchedAt = 0n;
    for (let name = remaining.pop(); name !== undefined; name = remaining.pop()) {
      if (name === '' || name === '.') continue;
      if (name === '..') {
        real = dirname(real);
        continue;
      }
      lookups.push({ folder: real, name });
      const next = join(real, name);
      const entry = await this.lstat(next);
      if (typeof entry === 'string') return { lookups, switchedAt, error: { path: next, code: entry } };
      if (!entry.isSymbolicLink()) {
        real = next;
        continue;
      }
      links += 1;
      if (entry.ctimeNs > switchedAt) switchedAt = entry.ctimeNs;
      const target = await this.#readlink(next);
      if (target === '') return { lookups, switchedAt, error: { path: next, code: 'ENOENT' } };
      if (links > MAX_LINKS) return { lookups, switchedAt, error: { path: next, code: 'ELOOP' } };
      if (target.startsWith('/')) real = '/';
      remaining.push(...target.split('/').reverse());
    }
    return { lookups, real, switchedAt };
  }

  /** The target of a link as it is written; '' when the link has been removed in the meantime. */
  #readlink(link: string): Promise<string> {
    return cached(this.#targets, link, () => readlink(link).catch(() => ''));
  }
}

/**
 * Identifies a folder independently of its name. It includes the creation time, because a folder that is removed and created
 * again often gets the same inode number.
 */
export function identityOf({ dev, ino, birthtimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${birthtimeNs}`;
}

function cached<T>(cache: Map<string, Promise<T>>, path: string, load: () => Promise<T>): Promise<T> {
  let result = cache.get(path);
  if (result === undefined) cache.set(path, (result = load()));
  return result;
}

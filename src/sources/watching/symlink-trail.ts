import type { BigIntStats } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** A name that was looked up in a real folder on the way. */
export interface Lookup {
  readonly folder: string;
  readonly name: string;
}

/** The way that a path takes through the file system, links included. */
export interface Trail {
  /** Every look-up on the way, up to the first that failed: a change of any of them can lead the path elsewhere. */
  readonly lookups: readonly Lookup[];
  /** Where the path ends, without links; undefined when it leads nowhere. */
  readonly real: string | undefined;
  /** What cannot be seen, and why (`ENOENT`, `EACCES`, `ELOOP`); undefined when the path leads somewhere. */
  readonly obstacle: { readonly path: string; readonly code: string } | undefined;
}

/** An entry itself, not what it links to; or the code of the error that looking at it gave. */
export type TrailEntry = BigIntStats | string;

/** As the kernel: more links on one path are taken for a circle. */
const MOST_LINKS = 40;

/**
 * Follows paths by hand. It remembers what it has seen, so that paths with a common part cost little: use one for one moment
 * only.
 */
export class Tracker {
  readonly #entries = new Map<string, Promise<TrailEntry>>();
  readonly #targets = new Map<string, Promise<string>>();

  entry(path: string): Promise<TrailEntry> {
    return remembered(this.#entries, path, () => lstat(path, { bigint: true }).catch(codeOf));
  }

  /** @param path an absolute path */
  async follow(path: string): Promise<Trail> {
    const lookups: Lookup[] = [];
    const ahead = path.split('/').reverse();
    let here = '/';
    let links = 0;
    for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
      if (name === '' || name === '.') continue;
      if (name === '..') {
        here = dirname(here);
        continue;
      }
      lookups.push({ folder: here, name });
      const there = join(here, name);
      const entry = await this.entry(there);
      if (typeof entry === 'string') return nowhere(lookups, there, entry);
      if (!entry.isSymbolicLink()) {
        here = there;
        continue;
      }
      links += 1;
      const target = await this.#target(there);
      if (target === '') return nowhere(lookups, there, 'ENOENT');
      if (links > MOST_LINKS) return nowhere(lookups, there, 'ELOOP');
      if (target.startsWith('/')) here = '/';
      ahead.push(...target.split('/').reverse());
    }
    return { lookups, real: here, obstacle: undefined };
  }

  /** Where a link leads, as it says; '' when it has gone meanwhile. */
  #target(link: string): Promise<string> {
    return remembered(this.#targets, link, () => readlink(link).catch(() => ''));
  }
}

function nowhere(lookups: readonly Lookup[], path: string, code: string): Trail {
  return { lookups, real: undefined, obstacle: { path, code } };
}

/** The code of a file system's error, `EIO` when it has none. */
export function codeOf(error: unknown): string {
  return textOf(error, 'code') ?? 'EIO';
}

/** The path that a file system's error is about. */
export function pathOf(error: unknown): string | undefined {
  return textOf(error, 'path');
}

function textOf(error: unknown, property: 'code' | 'path'): string | undefined {
  const value: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, property) : undefined;
  return typeof value === 'string' ? value : undefined;
}

/**
 * What a folder is, whatever it is called. The time of birth is part of it because a folder that is removed and made again
 * often gets the same inode number.
 */
export function identityOf({ dev, ino, birthtimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${birthtimeNs}`;
}

function remembered<T>(memory: Map<string, Promise<T>>, path: string, look: () => Promise<T>): Promise<T> {
  let known = memory.get(path);
  if (known === undefined) memory.set(path, (known = look()));
  return known;
}

import type { BigIntStats } from 'node:fs';

/** The code of a file system's error, for example `ENOENT`; `EIO` when it has none. */
export function codeOf(error: unknown): string {
  const code: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' ? code : 'EIO';
}

/**
 * Identifies the state of a file without reading it. Includes the change time: it alone shows that contents were exchanged while
 * size and modification time were kept.
 */
export function stampOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}

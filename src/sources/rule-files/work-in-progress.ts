import type { FileFacts } from './snapshot';

/**
 * Whether somebody may still be at work on these files: one has gone or is new, was written to in place, or has become blank.
 * Only files that were put in the place of others (renamed over them, switched to) are certainly whole.
 */
export function mayBeWorkInProgress(
  before: ReadonlyMap<string, FileFacts>,
  now: ReadonlyMap<string, FileFacts>,
): boolean {
  for (const path of before.keys()) if (!now.has(path)) return true;
  for (const [path, file] of now) {
    const earlier = before.get(path);
    if (earlier === undefined || (file.isBlank && !earlier.isBlank)) return true;
    if (file.inode === earlier.inode && file.stamp !== earlier.stamp) return true;
  }
  return false;
}

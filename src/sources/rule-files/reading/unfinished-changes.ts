import type { FileFacts } from './snapshot';

/**
 * Whether the change from `before` to `now` may still be in progress: a file is missing or new, was written in place, or has
 * become blank. Only a file that was replaced in one step (another one renamed over it, a link switched) is certainly complete.
 */
export function mayBeUnfinished(before: ReadonlyMap<string, FileFacts>, now: ReadonlyMap<string, FileFacts>): boolean {
  for (const path of before.keys()) if (!now.has(path)) return true;
  for (const [path, file] of now) {
    const earlier = before.get(path);
    if (earlier === undefined || (file.isBlank && !earlier.isBlank)) return true;
    if (file.inode === earlier.inode && file.stamp !== earlier.stamp) return true;
  }
  return false;
}

import type { FileStat } from './stat-folder';

/**
 * Whether the change from `before` to `now` may still be in progress: a file is missing or new, or was written at its place. Only
 * a file that was replaced in one step (another one renamed over it, a link switched) is certainly complete.
 */
export function mayBeUnfinished(before: ReadonlyMap<string, FileStat>, now: ReadonlyMap<string, FileStat>): boolean {
  for (const path of before.keys()) if (!now.has(path)) return true;
  for (const [path, file] of now) {
    const earlier = before.get(path);
    if (earlier === undefined) return true;
    if (file.inode === earlier.inode ? file.stamp !== earlier.stamp : !file.wasMoved) return true;
  }
  return false;
}

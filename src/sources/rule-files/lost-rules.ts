import type { FileFacts } from './snapshot';

/**
 * Whether rules may be missing from these files only because somebody is at work on them: a file has gone, or became blank;
 * one was made shorter in place; or one changed in place, or new, does not end with a line feed, as when the rest is still to
 * come. A file that was put in the place of another (renamed, switched) is whole.
 */
export function mayHaveLostRules(before: ReadonlyMap<string, FileFacts>, now: ReadonlyMap<string, FileFacts>): boolean {
  for (const path of before.keys()) if (!now.has(path)) return true;
  for (const [path, file] of now) if (mayBeHalfWritten(before.get(path), file)) return true;
  return false;
}

function mayBeHalfWritten(before: FileFacts | undefined, now: FileFacts): boolean {
  if (before === undefined) return !now.endsWithLineFeed;
  if (now.isBlank && !before.isBlank) return true;
  if (now.inode !== before.inode) return false;
  return now.size < before.size || (before.endsWithLineFeed && !now.endsWithLineFeed);
}

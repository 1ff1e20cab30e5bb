import type { Entry } from './request';

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
/** No UTF-16 code unit: follows each text, so that texts of other lengths are other ones. */
const END = 0x10000;

/**
 * Whether a limit with `enforce_percent` is enforced for the callers with a descriptor. That depends on the domain and
 * the descriptor alone, so that it is the same in all instances and versions, and who is in stays in while the number
 * grows.
 *
 * @param percent from 0 to 100
 */
export function isEnforced(percent: number, domain: string, entries: readonly Entry[]): boolean {
  return shareOf(domain, entries) * 100 < percent;
}

/** A number from 0 to 1, exclusive of 1, that depends on the texts alone; those of many texts are spread evenly. */
export function shareOf(domain: string, entries: readonly Entry[]): number {
  let hash = hashed(FNV_OFFSET, domain);
  for (const { key, value } of entries) hash = hashed(hashed(hash, key), value);
  // Similar texts have similar hashes up to here: the last steps of MurmurHash3 (fmix32) spread them.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

/** FNV-1a, by UTF-16 code units. */
function hashed(before: number, text: string): number {
  let hash = before;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), FNV_PRIME);
  return Math.imul(hash ^ END, FNV_PRIME);
}

import { createHash } from 'node:crypto';

/**
 * The longest key that a table of this process keeps as it is, in characters. Keys of addresses, users and paths are
 * shorter; a digest takes a microsecond, as much as a decision.
 */
export const LONGEST_TABLE_KEY = 256;

/** A character that takes two bytes in memory. V8 stores a text with any such character in two bytes per character. */
const WIDE = /[\u0100-\uffff]/;

/**
 * The key under which a table of this process keeps a counter: a long cache key becomes its SHA-256 digest, so that
 * every entry takes a bounded number of bytes. A digest in Base64 ends with `=`, a cache key with a digit, so neither
 * is ever taken for the other.
 */
export function tableKey(cacheKey: string): string {
  if (cacheKey.length <= LONGEST_TABLE_KEY) return cacheKey;
  return createHash('sha256').update(cacheKey).digest('base64');
}

/**
 * A text of at most `most` characters, which differs for different texts: of a longer one, the beginning and 48 bits of
 * its SHA-256 digest.
 */
export function boundedText(text: string, most: number): string {
  if (text.length <= most) return text;
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 12);
  return `${text.slice(0, most - 1 - digest.length)}…${digest}`;
}

/**
 * A copy of a text for a table, which shares no memory with other texts: V8 keeps a part of a text as a reference to
 * the whole text, and a concatenation as a tree of its parts.
 */
export function ownText(text: string): string {
  const encoding = WIDE.test(text) ? 'utf16le' : 'latin1';
  return Buffer.from(text, encoding).toString(encoding);
}

/** The bytes that the characters of an {@link ownText} take in memory. */
export function textBytes(own: string): number {
  return WIDE.test(own) ? own.length * 2 : own.length;
}

import { shortAscii } from './short-ascii';

const SLOTS = 512;

/**
 * Reads short texts that are the same in most messages, domains and keys. A name that occurs again takes no memory and, as the same
 * string, keeps its hash: looking it up in a map is cheaper, too. The bytes select one of a fixed number of slots, and all of them
 * are compared. Not for values: with many different ones, replacing the names costs more than is gained.
 */
export class NameMemo {
  readonly #slots: (string | undefined)[] = Array.from({ length: SLOTS });

  /** Reads `bytes[start, end)`, as {@link shortAscii}. */
  find(bytes: Uint8Array, start: number, end: number): string | undefined {
    let hash = 0;
    for (let at = start; at < end; at += 1) hash = (Math.imul(hash, 31) + (bytes[at] as number)) | 0;
    const slot = (hash ^ (hash >>> 9)) & (SLOTS - 1);
    const known = this.#slots[slot];
    if (known !== undefined && isText(known, bytes, start, end)) return known;
    const text = shortAscii(bytes, start, end);
    if (text !== undefined) this.#slots[slot] = text;
    return text;
  }
}

function isText(text: string, bytes: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) !== bytes[start + at]) return false;
  return true;
}

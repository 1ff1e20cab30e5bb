const SLOTS = 64;
/** Longer blocks are not remembered: they contain values that differ from call to call. */
const MAX_BLOCK_BYTES = 256;
/** The generation of a block without references to the dynamic table: its value never changes. */
export const ANY_GENERATION = -1;

interface MemoEntry<V> {
  /** A copy: a view would keep the whole chunk in memory. */
  readonly block: Uint8Array;
  readonly generation: number;
  readonly value: V;
}

/**
 * The results of earlier header blocks of a connection, by the exact bytes of the block and the generation of the dynamic
 * table. Only blocks that do not change the table may be remembered. A hash selects the slot; all bytes are compared.
 */
export class HeaderMemo<V> {
  #slots: (MemoEntry<V> | undefined)[] | undefined;
  #latest: MemoEntry<V> | undefined;

  find(source: Uint8Array, start: number, end: number, generation: number): V | undefined {
    const latest = this.#latest;
    if (latest === undefined) return undefined;
    if (matches(latest, source, start, end, generation)) return latest.value;
    if (end - start > MAX_BLOCK_BYTES) return undefined;
    const entry = this.#slots![slotOf(source, start, end)];
    if (entry === undefined || !matches(entry, source, start, end, generation)) return undefined;
    this.#latest = entry;
    return entry.value;
  }

  /** `generation`: of the dynamic table, or {@link ANY_GENERATION} if the block does not refer to it. */
  remember(source: Uint8Array, start: number, end: number, generation: number, value: V): void {
    if (end - start > MAX_BLOCK_BYTES) return;
    this.#slots ??= Array.from({ length: SLOTS });
    this.#latest = { block: Uint8Array.prototype.slice.call(source, start, end), generation, value };
    this.#slots[slotOf(source, start, end)] = this.#latest;
  }
}

function matches(
  entry: MemoEntry<unknown>,
  source: Uint8Array,
  start: number,
  end: number,
  generation: number,
): boolean {
  const { block } = entry;
  if (block.length !== end - start) return false;
  if (entry.generation !== generation && entry.generation !== ANY_GENERATION) return false;
  for (let at = 0; at < block.length; at += 1) if (block[at] !== source[start + at]) return false;
  return true;
}

function slotOf(source: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end; at += 1) hash = (Math.imul(hash, 31) + source[at]!) | 0;
  return hash & (SLOTS - 1);
}

/** The numbers of a slot: parent, label and child of an edge, and one that is not used, so that a slot is in one line of the cache. */
const SLOT = 4;

/**
 * A tree whose edges have numbers as labels, in typed arrays, so that a thread can transfer it without copying. Nodes are numbers; the
 * root is 0. Plain data.
 */
export interface TrieArrays {
  /** By node. */
  readonly parents: Int32Array;
  /** An open-addressing hash table of the edges. The child is 0 in a free slot. The number of slots is a power of 2. */
  readonly slots: Int32Array;
}

/** The child of a node at the edge with this label; 0 if there is none. */
export function childOf({ slots }: Pick<TrieArrays, 'slots'>, node: number, label: number): number {
  const mask = slots.length - SLOT;
  for (let slot = slotOf(node, label) & mask; ; slot = (slot + SLOT) & mask) {
    const child = slots[slot + 2] as number;
    if (child === 0 || (slots[slot] === node && slots[slot + 1] === label)) return child;
  }
}

function slotOf(node: number, label: number): number {
  let hash = Math.imul(node, 0x9e3779b1) ^ Math.imul(label, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) << 2;
}

/** Builds a trie incrementally. */
export class TrieBuilder {
  #parents = new Int32Array(16);
  #labels = new Int32Array(16);
  #slots = new Int32Array(32 * SLOT);
  #size = 1;

  /** The number of nodes, the root included. */
  get size(): number {
    return this.#size;
  }

  parentOf(node: number): number {
    return this.#parents[node] as number;
  }

  labelOf(node: number): number {
    return this.#labels[node] as number;
  }

  child(node: number, label: number): number {
    return childOf({ slots: this.#slots }, node, label);
  }

  /** The child of a node at the edge with this label, which is created if there is none: then it has the highest number. */
  add(node: number, label: number): number {
    const known = this.child(node, label);
    if (known !== 0) return known;
    if (this.#size === this.#parents.length) this.#grow();
    const created = this.#size;
    this.#size += 1;
    this.#parents[created] = node;
    this.#labels[created] = label;
    this.#insert(created);
    return created;
  }

  finish(): TrieArrays {
    return {
      parents: this.#parents.slice(0, this.#size),
      slots: this.#slots,
    };
  }

  /** Doubles the arrays: at most half of the slots are in use. */
  #grow(): void {
    const capacity = this.#parents.length * 2;
    this.#parents = grown(this.#parents, capacity);
    this.#labels = grown(this.#labels, capacity);
    this.#slots = new Int32Array(capacity * 2 * SLOT);
    for (let node = 1; node < this.#size; node += 1) this.#insert(node);
  }

  #insert(node: number): void {
    const slots = this.#slots;
    const mask = slots.length - SLOT;
    const parent = this.#parents[node] as number;
    const label = this.#labels[node] as number;
    let slot = slotOf(parent, label) & mask;
    while (slots[slot + 2] !== 0) slot = (slot + SLOT) & mask;
    slots[slot] = parent;
    slots[slot + 1] = label;
    slots[slot + 2] = node;
  }
}

function grown(array: Int32Array, capacity: number): Int32Array<ArrayBuffer> {
  const result = new Int32Array(capacity);
  result.set(array);
  return result;
}

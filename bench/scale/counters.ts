import type { Batch } from '../../src/counting/batch';
import type { Counted, Stored } from '../../src/counting/operation';
import { type CounterTable, run } from '../../src/counting/simulate';
import { SLOTS, keySlot } from '../../src/sinks/counters/kvstore/slots';
import type { BatchStore } from '../../test/support/data/lease-fleet';

/** What every key begins with. */
export const PREFIX = 'scale_user_';

/** One window of all keys. */
interface KeyWindow {
  readonly counts: Uint32Array;
  /** The node of each key, plus 1; 0: not looked up yet. */
  readonly nodes: Uint8Array;
}

/**
 * The counters of a store with fixed windows, by the number of the key: the part of a store that decides, of the nodes
 * of a cluster.
 */
export class ScaleStore implements BatchStore, CounterTable {
  readonly #keys: number;
  readonly #nodes: number;
  readonly #windows = new Map<number, KeyWindow>();
  /** The windows of the pipelines that it has got. */
  windows = 0;
  /** The operations of each second, by node: the commands that it executes. */
  readonly #commands = new Map<number, Float64Array<ArrayBuffer>>();
  #ofSecond = new Float64Array();

  constructor(keys: number, nodes: number) {
    this.#keys = keys;
    this.#nodes = nodes;
  }

  apply(batch: Batch, now: number): readonly Stored[] {
    const second = Math.floor(now / 1_000);
    let ofSecond = this.#commands.get(second);
    if (ofSecond === undefined) this.#commands.set(second, (ofSecond = new Float64Array(this.#nodes)));
    this.#ofSecond = ofSecond;
    this.windows += 1;
    const { operations } = batch;
    for (const operation of operations) this.#count(operation);
    return run(operations, this);
  }

  ended(): void {
    // Nothing is kept of a batch.
  }

  countOf({ key }: Counted): number {
    return this.#windowOf(key).counts[numberOf(key)]!;
  }

  add({ key }: Counted, hits: number): number {
    const { counts } = this.#windowOf(key);
    const number = numberOf(key);
    return (counts[number] = Math.max(0, counts[number]! + hits));
  }

  stateOf(): never {
    throw new Error('limits with algorithms are not simulated at this scale');
  }

  keep(): never {
    throw new Error('limits with algorithms are not simulated at this scale');
  }

  /** Of each second between two times in Unix milliseconds, the commands of each node. */
  commandsIn(from: number, end: number): readonly Float64Array[] {
    return [...this.#commands]
      .filter(([second]) => second * 1_000 >= from && second * 1_000 < end)
      .map(([, nodes]) => nodes);
  }

  /** Forgets the windows that have started before a time, in Unix seconds. */
  forgetBefore(start: number): void {
    for (const window of this.#windows.keys()) if (window < start) this.#windows.delete(window);
  }

  #count({ key }: Counted): void {
    const { nodes } = this.#windowOf(key);
    const number = numberOf(key);
    // Slots are divided among the nodes in ranges of equal length.
    if (nodes[number] === 0) nodes[number] = 1 + Math.floor((keySlot(key) * this.#nodes) / SLOTS);
    this.#ofSecond[nodes[number]! - 1]! += 1;
  }

  #windowOf(key: string): KeyWindow {
    const start = Number(key.slice(key.lastIndexOf('_') + 1));
    let window = this.#windows.get(start);
    if (window === undefined) {
      window = { counts: new Uint32Array(this.#keys), nodes: new Uint8Array(this.#keys) };
      this.#windows.set(start, window);
    }
    return window;
  }
}

/** The number that is part of a key. */
export function numberOf(key: string): number {
  let number = 0;
  for (let index = PREFIX.length; key.charCodeAt(index) !== 0x5f; index += 1) {
    number = 10 * number + key.charCodeAt(index) - 0x30;
  }
  return number;
}

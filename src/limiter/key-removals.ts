import { hashOf } from '../text/wide-map';

const GROUP_BITS = 10;

/**
 * When keys were removed, in a bounded amount of memory: the last removal of each of 1,024 groups of keys. Of a key that was not
 * removed it may say so because of another one of its group.
 */
export class KeyRemovals {
  /** The number of the last removal of each group; 0 if there was none. */
  readonly #last = new Float64Array(2 ** GROUP_BITS);
  /** How many there were. */
  count = 0;

  add(key: string): void {
    this.count += 1;
    this.#last[groupOf(key)] = this.count;
  }

  /** Whether a key was removed after the first `count` removals. */
  hasSince(key: string, count: number): boolean {
    return (this.#last[groupOf(key)] as number) > count;
  }
}

function groupOf(key: string): number {
  return hashOf(key) >>> (32 - GROUP_BITS);
}

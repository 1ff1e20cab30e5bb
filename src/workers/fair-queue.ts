/**
 * Items that wait, each with a key. The keys take turns, so that many items of one keep those of the others waiting for
 * one turn only.
 */
export class FairQueue<T> {
  /** The items of each key that has some, in the order of the turns. */
  readonly #queues = new Map<string, Set<T>>();
  readonly #keys = new Map<T, string>();
  /** The keys that have so many items; the last is not empty. */
  readonly #byLength: Set<string>[] = [];

  get size(): number {
    return this.#keys.size;
  }

  add(key: string, item: T): void {
    let queue = this.#queues.get(key);
    if (queue === undefined) this.#queues.set(key, (queue = new Set()));
    queue.add(item);
    this.#keys.set(item, key);
    this.#resized(key, queue.size - 1, queue.size);
  }

  /** Removes the item that waits the longest for the key whose turn it is. */
  take(): T | undefined {
    const [next] = this.#queues;
    if (next === undefined) return undefined;
    const [key, queue] = next;
    const item = this.#takeFrom(queue);
    if (this.#queues.delete(key)) this.#queues.set(key, queue);
    return item;
  }

  /** Removes an item of the key with the most for one of this key, which has fewer than that; undefined otherwise. */
  giveWayTo(key: string): T | undefined {
    const own = this.#queues.get(key)?.size ?? 0;
    // With one more, the key would have as many.
    if (own + 1 >= this.#byLength.length - 1) return undefined;
    const [longest = ''] = this.#byLength.at(-1) ?? [];
    return this.#takeFrom(this.#queues.get(longest) ?? new Set());
  }

  /** Removes an item, if it waits. */
  delete(item: T): void {
    const key = this.#keys.get(item);
    const queue = key === undefined ? undefined : this.#queues.get(key);
    if (key === undefined || queue === undefined) return;
    queue.delete(item);
    this.#keys.delete(item);
    if (queue.size === 0) this.#queues.delete(key);
    this.#resized(key, queue.size + 1, queue.size);
  }

  /** Removes all items. */
  clear(): readonly T[] {
    const items = [...this.#keys.keys()];
    for (const item of items) this.delete(item);
    return items;
  }

  #takeFrom(queue: ReadonlySet<T>): T | undefined {
    const [item] = queue;
    if (item !== undefined) this.delete(item);
    return item;
  }

  #resized(key: string, from: number, to: number): void {
    this.#byLength[from]?.delete(key);
    if (to > 0) (this.#byLength[to] ??= new Set()).add(key);
    while (this.#byLength.length > 0 && !this.#byLength.at(-1)?.size) this.#byLength.pop();
  }
}

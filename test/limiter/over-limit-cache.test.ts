import fc from 'fast-check';
import { OverLimitCache } from '../../src/limiter/over-limit-cache';

describe('a full cache of keys over their limit', () => {
  it('counts a removed oldest key as expired if its window has ended, otherwise as evicted', () => {
    // Room for two keys of four letters.
    const cache = new OverLimitCache(250);
    cache.add('brie', 1, 101, 100);
    cache.add('long', 1, 1000, 100);
    cache.add('next', 1, 1000, 100);
    expect([cache.size, cache.expired, cache.evicted]).toEqual([2, 0, 1]);

    cache.add('soon', 1, 103, 101);
    expect([cache.size, cache.expired, cache.evicted]).toEqual([2, 0, 2]);
    cache.add('last', 1, 1000, 102);
    cache.add('more', 1, 1000, 103);
    expect([cache.size, cache.expired, cache.evicted]).toEqual([2, 1, 3]);
    expect(cache.isOver('soon', 1, 103)).toBe(false);
    expect(cache.isOver('last', 1, 103)).toBe(true);
  });
});

describe('a cache of keys over their limit', () => {
  /** The keys over their limit 1, the oldest first, in a cache with room for `room` keys of one letter. */
  class Model {
    readonly #room: number;
    keys: readonly string[] = [];
    evicted = 0;

    constructor(room: number) {
      this.#room = room;
    }

    add(key: string): void {
      this.remove(key);
      this.keys = [...this.keys, key];
      if (this.keys.length <= this.#room) return;
      this.keys = this.keys.slice(1);
      this.evicted += 1;
    }

    remove(key: string): void {
      this.keys = this.keys.filter((each) => each !== key);
    }
  }

  const letters = ['a', 'b', 'c', 'd', 'e', 'f'];
  const steps = fc.array(
    fc.record({ key: fc.constantFrom(...letters), action: fc.constantFrom('add', 'add', 'remove') }),
    { minLength: 10, maxLength: 40 },
  );

  it('evicts the key that was added first, where a key added again counts as new', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 5 }), (all, room) => {
        const model = new Model(room);
        const cache = new OverLimitCache(room * 121);
        for (const { key, action } of all) {
          if (action === 'add') {
            model.add(key);
            cache.add(key, 1, 1000, 100);
          } else {
            model.remove(key);
            cache.remove(key);
          }
          expect([cache.size, cache.evicted]).toEqual([model.keys.length, model.evicted]);
        }
        expect(letters.filter((key) => cache.isOver(key, 1, 100))).toEqual(
          letters.filter((key) => model.keys.includes(key)),
        );
      }),
    );
  });
});

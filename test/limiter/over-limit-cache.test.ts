import { OverLimitCache } from '../../src/limiter/over-limit-cache';

describe('a full cache of keys over their limit', () => {
  it('counts a removed oldest key as expired if its window has ended, otherwise as evicted', () => {
    // Room for two keys of four letters.
    const cache = new OverLimitCache(200);
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

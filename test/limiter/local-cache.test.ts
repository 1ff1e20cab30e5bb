import { OverLimitCache } from '../../src/limiter/over-limit-cache';
import { Code } from '../../src/limiter/verdict';
import type { Descriptor } from '../../src/limiter/request';
import fc from '../support/data/properties';
import { request } from '../support/data/requests';
import { rulesetOf } from '../support/data/rules';
import { call, hits, overall, rule, serve } from './serve';

const CACHED = { localCacheBytes: 10_000 };
const FULL = hits('k=x', 5);

function gauges(service: ReturnType<typeof serve>, ...names: readonly string[]) {
  const values = new Map(service.statistics.entries());
  return names.map((name) => values.get(`ratelimit.localcache.${name}`));
}

describe('the local cache', () => {
  it('decides for a key that is over without the store', () => {
    const service = serve([rule(1)], CACHED);
    call(service, FULL);
    service.moved();
    const { statuses } = call(service, hits('k=x', 3));
    expect(statuses[0]).toMatchObject({ code: Code.OVER_LIMIT, limitRemaining: 0, secondsUntilReset: 50 });
    const moved = { 'shop.k.total_hits': 3, 'shop.k.over_limit': 3, 'shop.k.over_limit_with_local_cache': 3 };
    expect(service.moved()).toEqual(moved);
    service.ruleset = rulesetOf('shop', rule(1, { shadowMode: true }));
    expect(overall(service, 'k=x')).toEqual(['OK']);
    expect(service.moved()).toMatchObject({ 'shop.k.shadow_mode': 1, 'shop.k.over_limit_with_local_cache': 1 });
  });

  it('is not used without room', () => {
    const service = serve([rule(1)]);
    call(service, FULL);
    call(service, FULL);
    expect(service.moved()).not.toHaveProperty('shop.k.over_limit_with_local_cache');
    expect(gauges(service, 'entryCount')).toEqual([undefined]);
  });

  it('ignores a key after its limit is raised, hits are subtracted, or its window ends', () => {
    const service = serve([rule(1)], CACHED);
    call(service, FULL);
    service.ruleset = rulesetOf('shop', rule(100));
    expect(overall(service, 'k=x')).toEqual(['OK']);
    service.ruleset = rulesetOf('shop', rule(1));
    expect(overall(service, 'k=x', hits('k=x', -100), 'k=x', FULL)).toEqual(['OVER', 'OK', 'OK', 'OVER']);
    service.now += 50_000;
    expect(overall(service, 'k=x')).toEqual(['OK']);
    call(service, FULL, hits('k=x', -9));
    expect(overall(service, 'k=x')).toEqual(['OK']);
  });

  it('does not keep a key from which hits were subtracted before its verdict', () => {
    const { limiter, ruleset, now } = serve([rule(1)], CACHED);
    function begin(sketch: string | Descriptor) {
      return limiter.begin(request('shop', [sketch]), ruleset, now);
    }
    const over = begin(FULL);
    for (const operation of over.operations) operation.countAfter = 5;
    begin(hits('k=x', -5)).verdict();
    expect(over.verdict().overallCode).toBe(Code.OVER_LIMIT);
    const next = begin('k=x');
    expect(next.operations).toHaveLength(1);
    // The subtraction from its own key was before it.
    begin(hits('k=other', -5)).verdict();
    for (const operation of next.operations) operation.countAfter = 5;
    next.verdict();
    expect(begin('k=x').operations).toEqual([]);
  });

  it('reports its look-ups, and evicts the oldest keys above its size limit', () => {
    const service = serve([rule(1)], { localCacheBytes: 1000 });
    for (let user = 0; user < 100; user += 1) call(service, hits(`k=${user}`, 5));
    service.now += 2000;
    for (const key of ['k=99', 'k=98', 'k=0']) call(service, key);
    expect(gauges(service, 'entryCount', 'evacuateCount', 'lookupCount', 'hitCount', 'missCount')).toEqual([
      ...[7, 94],
      ...[103, 2, 101],
    ]);
    service.now += 50_000;
    call(service, hits('k=99', 5));
    expect(gauges(service, 'entryCount', 'expiredCount', 'overwriteCount')).toEqual([7, 1, 0]);
  });
});

describe('a cache of keys over their limit', () => {
  function overOf(cache: OverLimitCache, keys: readonly string[], now: number) {
    return keys.filter((key) => cache.isOver(key, 1, now));
  }

  it('counts a removed oldest key as expired if its window has ended, otherwise as evicted', () => {
    // Room for two keys of four letters.
    const cache = new OverLimitCache(250);
    for (const [key, now] of Object.entries({ brie: 100, long: 100, next: 100, soon: 101, last: 102, more: 103 })) {
      cache.add(key, 1, { brie: 101, soon: 103 }[key] ?? 1000, now);
    }
    expect([cache.size, cache.expired, cache.evicted]).toEqual([2, 1, 3]);
    expect(overOf(cache, ['soon', 'last', 'more'], 103)).toEqual(['last', 'more']);
    expect(cache.averageAccessTime).toBe(103);
  });

  it('evicts the key that was added first, where a key added again counts as new', () => {
    const letters = ['a', 'b', 'c', 'd', 'e', 'f'];
    const step = fc.record({ key: fc.constantFrom(...letters), isAdded: fc.constantFrom(true, true, false) });
    const steps = fc.array(step, { minLength: 10, maxLength: 40 });
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 5 }), (all, room) => {
        const cache = new OverLimitCache(room * 121);
        let [model, evicted, overwritten] = [[] as readonly string[], 0, 0];
        for (const { key, isAdded } of all) {
          if (isAdded && model.includes(key)) overwritten += 1;
          model = [...model.filter((each) => each !== key), ...(isAdded ? [key] : [])];
          if (model.length > room) evicted += 1;
          model = model.slice(-room);
          if (isAdded) cache.add(key, 1, 1000, 100);
          else cache.remove(key);
          expect([cache.size, cache.evicted, cache.overwritten]).toEqual([model.length, evicted, overwritten]);
        }
        expect(overOf(cache, letters, 100)).toEqual(letters.filter((key) => model.includes(key)));
      }),
    );
  });

  it('takes the memory of a digest for a long key, keeps long keys apart, and counts two bytes outside Latin-1', () => {
    const cache = new OverLimitCache(2 * (120 + 44));
    const long = ['1', '2', '3'].map((end) => 'x'.repeat(1_000_000) + end);
    for (const key of long.slice(0, 2)) cache.add(key, 1, 1000, 100);
    expect(overOf(cache, long, 100)).toEqual(long.slice(0, 2));
    cache.remove(`${long[0]}`);
    expect(overOf(cache, long, 100)).toEqual(long.slice(1, 2));
    // Room for two keys, or for three of one byte per character.
    const wide = new OverLimitCache(3 * (120 + 101));
    for (const key of ['1', '2', '3']) wide.add('鍵'.repeat(100) + key, 1, 1000, 100);
    expect([wide.size, wide.evicted]).toEqual([2, 1]);
    const tiny = new OverLimitCache(121);
    tiny.add('a', 1, 1000, 100);
    tiny.add('too long', 1, 1000, 100);
    expect([tiny.size, tiny.evicted]).toEqual([1, 0]);
  });

  it('starts again when the clock goes back, so that a window that comes again is counted by the store', () => {
    const cache = new OverLimitCache(10_000);
    cache.add('live', 1, 200, 100);
    cache.add('ahead', 1, 8000, 7300);
    expect(overOf(cache, ['ahead'], 7301)).toEqual(['ahead']);
    expect(overOf(cache, ['live', 'ahead'], 101)).toEqual([]);
    expect([cache.size, cache.expired, cache.averageAccessTime]).toEqual([0, 2, 0]);
    // It was looked up before the clock went back.
    cache.add('ahead', 1, 8000, 7300);
    cache.add('again', 1, 200, 101);
    expect(cache.averageAccessTime).toBe(101);
    expect(overOf(cache, ['ahead', 'again'], 102)).toEqual(['again']);
  });

  it('keeps its keys when the store has taken seconds for one of them', () => {
    const cache = new OverLimitCache(10_000);
    expect(overOf(cache, ['slow', 'quick'], 100)).toEqual([]);
    cache.add('quick', 1, 200, 100);
    expect(overOf(cache, ['quick'], 105)).toEqual(['quick']);
    cache.add('slow', 1, 200, 100);
    expect(overOf(cache, ['slow', 'quick'], 105)).toEqual(['slow', 'quick']);
  });

  it('lets the store be asked again for a key of the maximum age, and after the end of its window', () => {
    const cache = new OverLimitCache(10_000, 60);
    expect(cache.isOver('key', 1, 100)).toBe(false);
    cache.add('key', 1, 86_400, 100);
    cache.add('brief', 1, 110, 100);
    expect(overOf(cache, ['key', 'brief'], 109)).toEqual(['key', 'brief']);
    expect(overOf(cache, ['key', 'brief'], 110)).toEqual(['key']);
    expect([159, 160].map((now) => cache.holds('key', 1, now))).toEqual([true, false]);
    expect([cache.isOver('key', 1, 159), cache.isOver('key', 1, 160)]).toEqual([true, false]);
  });
});

import fc from 'fast-check';
import { BoundRule } from '../../src/limiter/bound-rule';
import { cacheKeyBody, windowStart } from '../../src/limiter/cache-key';
import type { Rule } from '../../src/rules/rule-tree';
import { matchRule } from '../../src/rules/ruleset';
import { plainStatisticsKey, statisticsKey } from '../../src/rules/statistics-key';
import { Statistics } from '../../src/statistics/statistics';
import { entries } from '../support/data/requests';
import { type RuleSketch, rulesetOf } from '../support/data/rules';
import { DEFAULT_OPTIONS } from '../support/data/service';
import { call, perMinute, remaining, rule, serve } from './serve';

const rateLimit = perMinute(5);
const [DETAILED, SHARED] = [{ detailedMetric: true }, { shareThreshold: true }];

function ruleFor(sketch: RuleSketch, text: string): Rule {
  const domain = rulesetOf('shop', sketch).domain('shop');
  return (domain && matchRule(domain, entries(text))) as Rule;
}

describe('the cache key of a counter, identical to that of the Go service', () => {
  it.each<[sketch: RuleSketch, text: string, body: string]>([
    [rule(5), 'k=v', 'shop_k_v_'],
    [rule(5), 'k=', 'shop_k__'],
    [rule(5, { value: 'v' }), 'k=v', 'shop_k_v_'],
    [rule(5, { value: 'v*' }), 'k=vw', 'shop_k_vw_'],
    [rule(5, { value: 'v*', ...SHARED }), 'k=vw', 'shop_k_v*_'],
    [rule(5, DETAILED), 'k=1.2.3.4:5|6', 'shop_k_1.2.3.4:5|6_'],
    [{ key: 'a', descriptors: [{ key: 'b', rateLimit }] }, 'a=1,b=2', 'shop_a_1_b_2_'],
    [{ key: 'a', value: '1*', ...SHARED, descriptors: [{ key: 'b', rateLimit }] }, 'a=12,b=2', 'shop_a_1*_b_2_'],
  ])('of rule %j for %s is %s', (sketch, text, body) => {
    expect(cacheKeyBody('p:', 'shop', entries(text), ruleFor(sketch, text))).toBe(`p:${body}`);
  });

  it('is shared by all matching values with share_threshold, otherwise separate; it is new in each window', () => {
    const service = serve([rule(5, { value: 'a*', ...SHARED }), rule(5, { value: 'b*' })]);
    const left = ['k=a1', 'k=a2', 'k=b1', 'k=b2'].flatMap((text) => remaining(call(service, text)));
    expect(left).toEqual([4, 3, 4, 4]);
    service.now += 60_000;
    expect(remaining(call(service, 'k=a1', 'k=b1'))).toEqual([4, 4]);
  });
});

describe('the data that the limiter keeps of a rule', () => {
  const NAME = 'ratelimit.service.rate_limit.';
  const options = { ...DEFAULT_OPTIONS, cacheKeyPrefix: 'p_' };

  /** Rules nested in each other, with the keys `k0`, `k1`, …; the last has the limit. */
  function nested([first, ...rest]: readonly Partial<RuleSketch>[], depth = 0): RuleSketch {
    return {
      ...first,
      key: `k${depth}`,
      ...(rest.length === 0 ? { rateLimit } : { descriptors: [nested(rest, depth + 1)] }),
    };
  }
  function entriesOf(values: readonly string[]) {
    return values.map((value, level) => ({ key: `k${level}`, value }));
  }
  function bind(levels: readonly Partial<RuleSketch>[], maxRuntimeKeys: number) {
    const bound = ruleFor(nested(levels), levels.map((_, level) => `k${level}=ab`).join(','));
    const statistics = new Statistics(maxRuntimeKeys);
    const data = new BoundRule(bound, options, statistics);
    function keysOf(values: readonly string[], seconds = 0) {
      const shared = data.sharedBy(entriesOf(values));
      return {
        shared,
        name: shared.statistics.name,
        key: data.cacheKey(shared, entriesOf(values), data.applied!, seconds),
      };
    }
    function isKept(values: readonly string[]) {
      return data.sharedBy(entriesOf(values)) === data.sharedBy(entriesOf(values));
    }
    return { rule: bound, statistics, keysOf, isKept };
  }

  it('gives the cache key and the statistics of their definitions, regardless of earlier calls', () => {
    const level = fc
      .record({ value: fc.constantFrom('', '', 'a*', 'ab'), detailedMetric: fc.boolean(), valueToMetric: fc.boolean() })
      .chain((sketch) => fc.boolean().map((is) => ({ ...sketch, shareThreshold: is && sketch.value === 'a*' })));
    const values = fc.tuple(...[0, 1, 2].map(() => fc.constantFrom('ab', 'abc', 'a')));
    const calls = fc.array(fc.tuple(values, fc.constantFrom(0, 30, 60, 61, 120)), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(fc.array(level, { minLength: 1, maxLength: 3 }), calls, (levels, all) => {
        const { rule: bound, keysOf } = bind(levels, 1_000);
        for (const [three, seconds] of all) {
          const sent = levels.map(({ value }, depth) => (value === 'ab' ? value : three[depth]!));
          const { name, key } = keysOf(sent, seconds);
          expect(name).toBe(NAME + statisticsKey(bound, entriesOf(sent)));
          expect(key).toBe(`${cacheKeyBody('p_', 'shop', entriesOf(sent), bound)}${windowStart(seconds, 60)}`);
        }
      }),
    );
  });

  it('is kept for values up to the maximum number of statistics; others count under the rule, by their own keys', () => {
    const { rule: bound, keysOf, isKept } = bind([DETAILED], 1);
    const rolledUp = NAME + plainStatisticsKey(bound);
    expect(['a', 'b', 'c', 'b', 'a'].map((value) => keysOf([value])).map(({ name, key }) => [name, key])).toEqual([
      [`${NAME}shop.k0_a`, 'p_shop_k0_a_0'],
      [rolledUp, 'p_shop_k0_b_0'],
      [rolledUp, 'p_shop_k0_c_0'],
      [rolledUp, 'p_shop_k0_b_0'],
      [`${NAME}shop.k0_a`, 'p_shop_k0_a_0'],
    ]);
    expect(['a', 'b'].map((value) => isKept([value]))).toEqual([true, false]);
    const two = bind([{}, DETAILED], 3);
    expect(['ab', 'ac', 'bb', 'bc', 'ab'].map((pair) => two.isKept([...pair]))).toEqual([
      true,
      true,
      true,
      false,
      true,
    ]);
  });

  it('is kept once per statistics key, however a text is split between levels', () => {
    const { rule: bound, statistics, keysOf, isKept } = bind([DETAILED, DETAILED], 10);
    const parts = Array.from({ length: 100 }, () => 'x');
    const splits = parts
      .slice(1)
      .map((_, index) => [parts.slice(0, index + 1), parts.slice(index + 1)].map((side) => side.join('.k1_')));
    for (const values of splits) keysOf(values).shared.statistics.totalHits += 1;
    expect(splits.filter(isKept)).toHaveLength(1);
    // Each split has its own counter in the store, and all count under the one key.
    expect(new Set(splits.map((values) => keysOf(values).key)).size).toBe(99);
    const name = NAME + statisticsKey(bound, entriesOf(splits[0]!));
    expect(statistics.rules.map((counted) => [counted.name, counted.totalHits])).toEqual([[name, 99]]);
    expect(isKept(['a', 'b'])).toBe(true);
  });
});

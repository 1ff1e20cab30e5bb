import fc from 'fast-check';
import { BoundRule } from '../../src/limiter/bound-rule';
import { cacheKeyBody, windowStart } from '../../src/limiter/cache-key';
import type { LimiterOptions } from '../../src/limiter/options';
import type { Rule } from '../../src/rules/rule-tree';
import { matchRule } from '../../src/rules/ruleset';
import { plainStatisticsKey, statisticsKey } from '../../src/rules/statistics-key';
import { Statistics } from '../../src/statistics/statistics';
import { type RuleSketch, limit, rulesetOf } from '../support/data/rules';

const PREFIX = 'p_';
const OPTIONS = { cacheKeyPrefix: PREFIX, nearLimitRatio: 0.8 } as LimiterOptions;
const MINUTE = 60;

function entriesOf(values: readonly string[]) {
  return values.map((value, level) => ({ key: `k${level}`, value }));
}

/** A path of rules `k0`, `k1`, …; the last has the limit. */
function pathOf([first, ...rest]: readonly Partial<RuleSketch>[], depth = 0): RuleSketch {
  const below = rest.length === 0 ? { rateLimit: limit(10, 'MINUTE') } : { descriptors: [pathOf(rest, depth + 1)] };
  return { ...first, key: `k${depth}`, ...below };
}

function bind(levels: readonly Partial<RuleSketch>[], values: readonly string[], maxRuntimeKeys: number) {
  const ruleset = rulesetOf('shop', pathOf(levels));
  const rule = matchRule(ruleset.domain('shop')!, entriesOf(values)) as Rule;
  const statistics = new Statistics(maxRuntimeKeys);
  return { rule, statistics, bound: new BoundRule(rule, OPTIONS, statistics) };
}

const NAME = 'ratelimit.service.rate_limit.';

describe('the bound data of a rule', () => {
  const level = fc.record({
    value: fc.constantFrom('', '', 'a*', 'ab'),
    detailedMetric: fc.boolean(),
    valueToMetric: fc.boolean(),
    isShared: fc.boolean(),
  });
  function sketchOf({ isShared, ...sketch }: { isShared: boolean; value: string }) {
    return {
      ...sketch,
      shareThreshold: isShared && sketch.value.includes('*'),
    };
  }

  it('provides the cache key and the statistics of their definitions, regardless of earlier calls', () => {
    fc.assert(
      fc.property(
        fc.array(level, { minLength: 1, maxLength: 3 }),
        fc.array(
          fc.record({
            values: fc.tuple(...[0, 1, 2].map(() => fc.constantFrom('ab', 'abc', 'a'))),
            seconds: fc.constantFrom(0, 30, 60, 61, 120),
          }),
          { minLength: 1, maxLength: 12 },
        ),
        (levels, calls) => {
          const sketches = levels.map(sketchOf);
          function fits(values: readonly string[]) {
            return sketches.every(({ value }, depth) => value !== 'ab' || values[depth] === 'ab');
          }
          const { rule, bound } = bind(sketches, ['ab', 'ab', 'ab'].slice(0, levels.length), 1_000);
          for (const { values, seconds } of calls) {
            const entries = entriesOf(values.slice(0, levels.length));
            if (!fits(values)) continue;
            const shared = bound.sharedBy(entries);
            expect(shared.statistics.name).toBe(NAME + statisticsKey(rule, entries));
            expect(bound.cacheKey(shared, entries, bound.applied!, seconds)).toBe(
              `${cacheKeyBody(PREFIX, 'shop', entries, rule)}${windowStart(seconds, MINUTE)}`,
            );
          }
        },
      ),
    );
  });

  it('counts values above the maximum under the rule, each with its own cache key', () => {
    const { rule, bound } = bind([{ detailedMetric: true }], ['a'], 1);
    function keyOf(value: string) {
      const entries = entriesOf([value]);
      const shared = bound.sharedBy(entries);
      return [shared.statistics.name, bound.cacheKey(shared, entries, bound.applied!, 0)];
    }
    const rolledUp = NAME + plainStatisticsKey(rule);
    expect(['a', 'b', 'c', 'b', 'a'].map(keyOf)).toEqual([
      [`${NAME}shop.k0_a`, 'p_shop_k0_a_0'],
      [rolledUp, 'p_shop_k0_b_0'],
      [rolledUp, 'p_shop_k0_c_0'],
      [rolledUp, 'p_shop_k0_b_0'],
      [`${NAME}shop.k0_a`, 'p_shop_k0_a_0'],
    ]);
  });

  it('keeps the state of values up to the maximum, and of no further ones', () => {
    const { bound } = bind([{}, { detailedMetric: true }], ['a', 'a'], 3);
    function isKept(values: string) {
      const entries = entriesOf(values.split(''));
      return bound.sharedBy(entries) === bound.sharedBy(entries);
    }
    expect(['ab', 'ac', 'bb', 'bc', 'ab'].map(isKept)).toEqual([true, true, true, false, true]);
  });

  it('keeps the state of as many values as there are statistics keys, however a text is split between levels', () => {
    const { rule, statistics, bound } = bind([{ detailedMetric: true }, { detailedMetric: true }], ['a', 'a'], 10);
    const parts = Array.from({ length: 100 }, () => 'x');
    const splits = parts.slice(1).map((_, index) => {
      const values = [parts.slice(0, index + 1), parts.slice(index + 1)].map((side) => side.join('.k1_'));
      return entriesOf(values);
    });
    const cacheKeys = new Set<string>();
    for (const entries of splits) {
      const shared = bound.sharedBy(entries);
      shared.statistics.totalHits += 1;
      cacheKeys.add(bound.cacheKey(shared, entries, bound.applied!, 0));
    }
    function isKept(entries: (typeof splits)[number]) {
      return bound.sharedBy(entries) === bound.sharedBy(entries);
    }
    expect(splits.filter(isKept).length).toBe(1);
    // Each split has its own counter in the store, and all count under the one key.
    expect(cacheKeys.size).toBe(99);
    expect(statistics.rules.map(({ name, totalHits }) => [name, totalHits])).toEqual([
      [NAME + statisticsKey(rule, splits[0]!), 99],
    ]);
    expect(isKept(entriesOf(['a', 'b']))).toBe(true);
  });
});

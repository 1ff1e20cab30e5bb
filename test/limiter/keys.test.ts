import { DEFAULT_OPTIONS } from '../../src/limiter/options';
import { BoundRule } from '../../src/limiter/bound-rule';
import { windowStart } from '../../src/counting/windows';
import { cacheKeyBody } from '../../src/limiter/cache-key';
import type { Rule } from '../../src/rules/rule-tree';
import { matchRule } from '../../src/rules/ruleset';
import { statisticsKey } from '../../src/rules/statistics-key';
import { Statistics } from '../../src/statistics/statistics';
import fc from '../support/data/properties';
import { entries, request } from '../support/data/requests';
import { type RuleSketch, rulesetOf } from '../support/data/rules';
import { call, perMinute, remaining, rule, serve } from './serve';

const rateLimit = perMinute(5);
const [DETAILED, SHARED] = [{ detailedMetric: true }, { shareThreshold: true }];

function ruleFor(sketch: RuleSketch, text: string): Rule {
  const domain = rulesetOf('shop', sketch).domains.get('shop');
  return (domain && matchRule(domain, entries(text))) as Rule;
}

describe('the cache key of a counter, identical to that of the Go service', () => {
  it.each<[sketch: RuleSketch, text: string, body: string]>([
    [rule(5), 'k=', 'shop_k__'],
    [rule(5, { value: 'v*' }), 'k=vw', 'shop_k_vw_'],
    [rule(5, { value: 'v*', ...SHARED }), 'k=vw', 'shop_k_v*_'],
    [rule(5, DETAILED), 'k=1.2.3.4:5|6', 'shop_k_1.2.3.4:5|6_'],
    [{ key: 'a', descriptors: [{ key: 'b', rateLimit }] }, 'a=1,b=2', 'shop_a_1_b_2_'],
    [{ key: 'a', value: '1*', ...SHARED, descriptors: [{ key: 'b', rateLimit }] }, 'a=12,b=2', 'shop_a_1*_b_2_'],
  ])('of rule %j for %s is %s', (sketch, text, body) => {
    expect(cacheKeyBody('p:', 'shop', entries(text), ruleFor(sketch, text))).toBe(`p:${body}`);
  });

  it.each([
    ['token_bucket', 'p:{_shop_k_x_}token_bucket_120'],
    ['sliding_window', 'p:{_shop_k_x_}sliding_window_120'],
  ] as const)('has no time with the algorithm %s, and is then %s', (algorithm, key) => {
    const limited = rule(5, { rateLimit: perMinute(5, { unitMultiplier: 2, algorithm }) });
    const service = serve([limited], { cacheKeyPrefix: 'p:' });
    for (const now of [service.now, service.now + 86_400_000]) {
      const { operations } = service.limiter.begin(request('shop', ['k=x']), service.ruleset, now);
      expect(operations.map((operation) => operation.key)).toEqual([key]);
    }
  });

  it('is shared by all matching values with share_threshold, otherwise separate; it is new in each window', () => {
    const service = serve([rule(5, { value: 'a*', ...SHARED }), rule(5, { value: 'b*' })]);
    const left = ['k=a1', 'k=a2', 'k=b1', 'k=b2'].flatMap((text) => remaining(call(service, text)));
    expect(left).toEqual([4, 3, 4, 4]);
    service.now += 60_000;
    expect(remaining(call(service, 'k=a1', 'k=b1'))).toEqual([4, 4]);
  });
});

describe('a counter and its statistics', () => {
  /** Rules nested in each other, with the keys `k0`, `k1`, …; the last has the limit. */
  function nested([first, ...rest]: readonly Partial<RuleSketch>[], depth = 0): RuleSketch {
    const below = rest.length === 0 ? { rateLimit } : { descriptors: [nested(rest, depth + 1)] };
    return { ...first, key: `k${depth}`, ...below };
  }
  function textOf(values: readonly string[]): string {
    return values.map((value, level) => `k${level}=${value}`).join(',');
  }
  /**
   * A service with nested rules: the cache key of a call with these values, and the key of the statistics that it
   * counts in.
   */
  function keeper(...levels: readonly Partial<RuleSketch>[]) {
    const service = serve([nested(levels)], { cacheKeyPrefix: 'p_' });
    return {
      service,
      keysOf: (...values: readonly string[]) => {
        service.moved();
        const decision = service.limiter.begin(request('shop', [textOf(values)]), service.ruleset, service.now);
        decision.failed();
        const counted = Object.keys(service.moved()).map((name) => name.replace('.total_hits', ''));
        return [decision.operations[0]?.key, ...counted];
      },
    };
  }

  it('have the keys of their definitions, regardless of earlier calls', () => {
    const level = fc
      .record({ value: fc.constantFrom('', '', 'a*', 'ab'), detailedMetric: fc.boolean(), valueToMetric: fc.boolean() })
      .chain((sketch) => fc.boolean().map((is) => ({ ...sketch, shareThreshold: is && sketch.value === 'a*' })));
    const values = fc.tuple(...[0, 1, 2].map(() => fc.constantFrom('ab', 'abc', 'a')));
    const calls = fc.array(fc.tuple(values, fc.constantFrom(0, 30, 60, 61, 120)), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(fc.array(level, { minLength: 1, maxLength: 3 }), calls, (levels, all) => {
        const { service, keysOf } = keeper(...levels);
        for (const [three, seconds] of all) {
          const sent = levels.map(({ value }, depth) => (value === 'ab' ? value : three[depth]!));
          service.now = seconds * 1000;
          const matched = ruleFor(nested(levels), textOf(sent));
          const body = cacheKeyBody('p_', 'shop', entries(textOf(sent)), matched);
          expect(keysOf(...sent)).toEqual([
            `${body}${windowStart(seconds, 60)}`,
            statisticsKey(matched, entries(textOf(sent))),
          ]);
        }
      }),
    );
  });

  it('share one statistics key where a text can be split between levels in several ways, but no counter', () => {
    const { service, keysOf } = keeper(DETAILED, DETAILED);
    const parts = Array.from({ length: 100 }, () => 'x');
    const keys = parts.slice(1).map((_, index) => {
      const values = [parts.slice(0, index + 1), parts.slice(index + 1)].map((side) => side.join('.k1_'));
      return keysOf(...values);
    });
    expect(new Set(keys.map(([key]) => key)).size).toBe(99);
    expect(new Set(keys.map(([, statistics]) => statistics)).size).toBe(1);
    expect(service.statistics.rules.map(({ totalHits }) => totalHits)).toEqual([99]);
    expect(keysOf('a', 'b')).toEqual([expect.stringMatching(/^p_shop_k0_a_k1_b_/), 'shop.k0_a.k1_b']);
  });
});

it('the state that the limiter keeps of a rule is that of as many values as there are statistics keys', () => {
  const both = ruleFor({ key: 'k0', ...DETAILED, descriptors: [{ key: 'k1', ...DETAILED, rateLimit }] }, 'k0=a,k1=a');
  const bound = new BoundRule(both, DEFAULT_OPTIONS, new Statistics(2));
  const sent = ['k0=x,k1=y', 'k0=x.k1_y,k1=y', 'k0=x,k1=y.k1_y', 'k0=a,k1=b', 'k0=x,k1=y'].map((text) => entries(text));
  const kept = sent.map((values) => bound.sharedBy(values) === bound.sharedBy(values));
  expect(kept).toEqual([true, true, false, false, true]);
});

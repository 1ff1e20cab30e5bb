import { cacheKeyBody, windowStart } from '../../src/limiter/cache-key';
import { matchRule } from '../../src/rules/ruleset';
import { unitByName } from '../../src/rules/unit';
import { descriptor, entries, request } from '../support/data/requests';
import { limit, type RuleSketch, rulesetOf } from '../support/data/rules';
import { TestService } from '../support/data/service';

const rateLimit = limit(5, 'MINUTE');

describe('the cache key, identical to that of the Go service', () => {
  it.each<[rule: RuleSketch, descriptor: string, body: string]>([
    [{ key: 'k', rateLimit }, 'k=v', 'shop_k_v_'],
    [{ key: 'k', rateLimit }, 'k=', 'shop_k__'],
    [{ key: 'k', value: 'v', rateLimit }, 'k=v', 'shop_k_v_'],
    [{ key: 'k', value: 'v*', rateLimit }, 'k=vw', 'shop_k_vw_'],
    [{ key: 'k', value: 'v*', shareThreshold: true, rateLimit }, 'k=vw', 'shop_k_v*_'],
    [{ key: 'a', descriptors: [{ key: 'b', rateLimit }] }, 'a=1,b=2', 'shop_a_1_b_2_'],
    [
      { key: 'a', value: '1*', shareThreshold: true, descriptors: [{ key: 'b', rateLimit }] },
      'a=12,b=2',
      'shop_a_1*_b_2_',
    ],
    [{ key: 'k', detailedMetric: true, rateLimit }, 'k=1.2.3.4:5|6', 'shop_k_1.2.3.4:5|6_'],
  ])('of rule %j for %s is %s', (rule, text, body) => {
    const domain = rulesetOf('shop', rule).domain('shop');
    const matched = domain && matchRule(domain, entries(text));
    expect(matched).toBeDefined();
    expect(cacheKeyBody('', 'shop', entries(text), matched)).toBe(body);
    expect(cacheKeyBody('p:', 'shop', entries(text), matched)).toBe(`p:${body}`);
  });
});

it.each([
  ['SECOND', 1_699_920_010],
  ['MINUTE', 1_699_920_000],
  ['HOUR', 1_699_920_000],
  ['DAY', 1_699_920_000],
  ['WEEK', 1_699_488_000],
  ['MONTH', 1_697_760_000],
  ['YEAR', 1_671_408_000],
] as const)('the window of one %s that contains 1699920010 starts at %i', (unit, start) => {
  const seconds = unitByName(unit)?.seconds ?? 0;
  expect(windowStart(1_699_920_010, seconds)).toBe(start);
  expect(Math.floor(1_699_920_010 / seconds) * seconds).toBe(start);
});

describe('the counter of a rule', () => {
  it('is shared by all matching values with share_threshold, otherwise separate for each value', async () => {
    const service = new TestService(
      rulesetOf(
        'shop',
        { key: 'k', value: 'a*', shareThreshold: true, rateLimit },
        { key: 'k', value: 'b*', rateLimit },
      ),
    );
    function left(text: string) {
      return service.decide(request('shop', [descriptor(text)])).statuses[0]?.limitRemaining;
    }
    expect([left('k=a1'), left('k=a2'), left('k=b1'), left('k=b2')]).toEqual([4, 3, 4, 4]);
    await service.close();
  });

  it('starts again in the next window', async () => {
    const service = new TestService(rulesetOf('shop', { key: 'k', value: 'v', rateLimit }));
    function left() {
      return service.decide(request('shop', ['k=v'])).statuses[0]?.limitRemaining;
    }
    expect([left(), left()]).toEqual([4, 3]);
    service.now += 60_000;
    expect(left()).toBe(4);
    await service.close();
  });
});

import { escapeStatisticsKey } from '../../src/statistics/escape';
import { Statistics } from '../../src/statistics/statistics';

describe('an escaped statistics key', () => {
  it.each([
    ['shop.k_v', 'shop.k_v'],
    ['shop.k_a:b|c', 'shop.k_a_b_c'],
    ['shop.ip_10.0.0.1', 'shop.ip_10_0_0_1'],
    ['shop.ip_10.0.0.1.x_1.2.3.4', 'shop.ip_10_0_0_1.x_1_2_3_4'],
    ['shop.v_1.2.3', 'shop.v_1.2.3'],
    ['shop.ip_1:2.3.4.5', 'shop.ip_1_2_3_4_5'],
    ['shop.v_1234.5.6.7', 'shop.v_1234_5_6_7'],
    ['shop.k_line\nfeed\u0000\u007f', 'shop.k_line_feed__'],
    ['shop.k_ünï cødé', 'shop.k_ünï cødé'],
  ])('of %j is %j', (key, escaped) => {
    expect(escapeStatisticsKey(key)).toBe(escaped);
  });
});

describe('the statistics registry', () => {
  function values(statistics: Statistics) {
    return new Map(statistics.entries());
  }

  it('returns the same counter for the same name', () => {
    const statistics = new Statistics(1);
    statistics.counter('a').add(1);
    statistics.counter('a').add(2);
    expect(values(statistics).get('a')).toBe(3);
  });

  it('combines two runtime keys that escape to the same name', () => {
    const statistics = new Statistics(10);
    statistics.runtimeRule('d.k_a:b', 'd.k').totalHits += 1;
    statistics.runtimeRule('d.k_a|b', 'd.k').totalHits += 1;
    expect(values(statistics).get('ratelimit.service.rate_limit.d.k_a_b.total_hits')).toBe(2);
  });

  it('limits the number of runtime keys of rules and unknown domains together, and keeps existing ones', () => {
    const statistics = new Statistics(2);
    statistics.runtimeRule('d.k_1', 'd.k').totalHits += 1;
    statistics.runtimeCounter('x.domain_not_found', 'other.domain_not_found').add(1);
    statistics.runtimeRule('d.k_2', 'd.k').totalHits += 1;
    statistics.runtimeCounter('y.domain_not_found', 'other.domain_not_found').add(1);
    statistics.runtimeRule('d.k_1', 'd.k').totalHits += 1;
    const found = values(statistics);
    function rule(key: string) {
      return found.get(`ratelimit.service.rate_limit.${key}`);
    }
    expect([rule('d.k_1.total_hits'), rule('d.k.total_hits'), rule('d.k_2.total_hits')]).toEqual([2, 1, undefined]);
    expect([rule('x.domain_not_found'), rule('other.domain_not_found')]).toEqual([1, 1]);
    expect(found.get('ratelimit.statistics.runtime_keys')).toBe(2);
    expect(found.get('ratelimit.statistics.rolled_up')).toBe(2);
  });
});

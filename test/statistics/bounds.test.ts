import { Statistics } from '../../src/statistics/statistics';

const MAX_KEYS = 10_000;

describe('the number of runtime keys', () => {
  it('does not exceed the maximum for a million distinct values, and every hit is counted', () => {
    const statistics = new Statistics(MAX_KEYS);
    for (let value = 0; value < 1_000_000; value += 1) {
      statistics.runtimeRule(`d.user_${value}`, 'd.user').totalHits += 1;
      if (value === 20_000) expect(statistics.rules).toHaveLength(MAX_KEYS + 1);
    }
    expect(statistics.rules).toHaveLength(MAX_KEYS + 1);
    const found = new Map(statistics.entries());
    expect(found.get('ratelimit.service.rate_limit.d.user.total_hits')).toBe(1_000_000 - MAX_KEYS);
    expect(found.get('ratelimit.statistics.runtime_keys')).toBe(MAX_KEYS);
    expect(found.get('ratelimit.statistics.rolled_up')).toBe(1_000_000 - MAX_KEYS);
    let hits = 0;
    for (const { totalHits } of statistics.rules) hits += totalHits;
    expect(hits).toBe(1_000_000);
  });

  it('does not include keys above a kilobyte, which are counted under their rule to limit memory', () => {
    const statistics = new Statistics(MAX_KEYS);
    statistics.runtimeRule(`d.user_${'x'.repeat(1_000)}`, 'd.user').totalHits += 1;
    statistics.runtimeRule(`d.user_${'x'.repeat(1_000_000)}`, 'd.user').totalHits += 1;
    statistics.runtimeCounter(`${'x'.repeat(1_000_000)}.domain_not_found`, 'other.domain_not_found').add(1);
    const found = new Map(statistics.entries());
    expect(found.get('ratelimit.service.rate_limit.d.user.total_hits')).toBe(1);
    expect(found.get('ratelimit.service.rate_limit.other.domain_not_found')).toBe(1);
    expect(found.get('ratelimit.statistics.runtime_keys')).toBe(1);
  });

  it('does not include keys beyond a mean length of 256 characters, which are counted under their rule', () => {
    const statistics = new Statistics(100);
    for (let value = 0; value < 100; value += 1) {
      statistics.runtimeRule(`d.user_${value}`.padEnd(1000, 'x'), 'd.user').totalHits += 1;
      statistics.runtimeCounter(`${value}`.padEnd(1000, 'x'), 'other.domain_not_found').add(1);
    }
    const found = new Map(statistics.entries());
    expect(found.get('ratelimit.statistics.runtime_keys')).toBe(25);
    expect(found.get('ratelimit.statistics.rolled_up')).toBe(175);
    statistics.runtimeRule('d.user_short', 'd.user').totalHits += 1;
    expect(found.get('ratelimit.service.rate_limit.d.user.total_hits')).toBe(87);
    expect(new Map(statistics.entries()).get('ratelimit.service.rate_limit.d.user_short.total_hits')).toBe(1);
  });
});

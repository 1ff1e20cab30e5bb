import { Offenders } from '../../../src/limiter/offenders/offenders';
import { Code } from '../../../src/limiter/verdict';
import { descriptor, request } from '../../support/data/requests';
import { type RuleSketch, limit, rulesetOf } from '../../support/data/rules';
import { TestService } from '../../support/data/service';
import type { LimiterOptions } from '../../../src/limiter/options';
import { unitByName } from '../../../src/rules/unit';

const START = 1_699_920_000_000;
const BANNED = limit(0, 'SECOND');

const services: TestService[] = [];
afterEach(() => Promise.all(services.splice(0).map((service) => service.close())));

function serve(rules: readonly RuleSketch[], options: Partial<LimiterOptions> = {}, capacity = 10) {
  const { cacheKeyPrefix = '' } = options;
  const offenders = new Offenders({ capacity, windowSeconds: 600, cacheKeyPrefix });
  const service = new TestService(rulesetOf('shop', ...rules), { ...options, offenders }, START);
  services.push(service);
  return {
    service,
    call: (...descriptors: Parameters<typeof request>[1]) => service.decide(request('shop', descriptors)),
    top: (more: { domain?: string; limit?: number } = {}) =>
      offenders.top({ limit: 10, ...more }, Math.floor(service.now / 1000)),
  };
}

describe('the offenders', () => {
  it('are the descriptors of calls over a limit, with their rule, in any window of the limit', () => {
    const { service, call, top } = serve([
      { key: 'user', descriptors: [{ key: 'plan', value: 'free', rateLimit: limit(1, 'SECOND') }] },
    ]);
    for (let second = 0; second < 3; second += 1) {
      for (let made = 0; made < 3; made += 1) call('user=anna,plan=free');
      call('user=ben,plan=free');
      service.now += 1000;
    }
    call('user=ben,plan=free');
    call('user=ben,plan=free');
    expect(top()).toEqual([
      {
        domain: 'shop',
        rule: 'shop.user.plan_free',
        descriptor: 'user=anna,plan=free',
        isShadow: false,
        limited: 6,
        error: 0,
      },
      {
        domain: 'shop',
        rule: 'shop.user.plan_free',
        descriptor: 'user=ben,plan=free',
        isShadow: false,
        limited: 1,
        error: 0,
      },
    ]);
  });

  it('include calls that the local cache answers, and those that shadow mode lets pass', () => {
    const { call, top } = serve(
      [
        { key: 'user', rateLimit: limit(1, 'MINUTE') },
        { key: 'path', rateLimit: limit(0, 'MINUTE'), shadowMode: true },
      ],
      { localCacheBytes: 10_000 },
    );
    for (let made = 0; made < 4; made += 1) call('user=anna');
    expect(call('path=/a').overallCode).toBe(Code.OK);
    expect(top()).toMatchObject([
      { rule: 'shop.user', limited: 3, isShadow: false },
      { rule: 'shop.path', descriptor: 'path=/a', limited: 1, isShadow: true },
    ]);
  });

  it('include limits that were sent with the request, without a rule', () => {
    const { call, top } = serve([]);
    call(descriptor('user=anna', { limit: { requestsPerUnit: 0, unit: unitByName('HOUR') } }));
    expect(top()).toMatchObject([{ domain: 'shop', rule: '', descriptor: 'user=anna', limited: 1 }]);
  });

  it('do not include calls within limits, without a limit, and with negative hits', () => {
    const { call, top } = serve([{ key: 'user', rateLimit: limit(1, 'MINUTE') }]);
    call('user=anna', 'other=x', descriptor('user=anna', { hitsAddend: 5, isNegativeHits: true }));
    expect(top()).toEqual([]);
  });

  it('are one for all values that share a threshold', () => {
    const { call, top } = serve([{ key: 'path', value: '/a/*', shareThreshold: true, rateLimit: BANNED }]);
    call('path=/a/1');
    call('path=/a/22');
    expect(top()).toMatchObject([{ rule: 'shop.path_/a/*', descriptor: 'path=/a/*', limited: 2 }]);
  });

  it('have the same texts with a prefix of the cache keys', () => {
    const { call, top } = serve([{ key: 'user', rateLimit: BANNED }], { cacheKeyPrefix: 'weir_' });
    call('user=a_b');
    expect(top()).toMatchObject([{ domain: 'shop', descriptor: 'user=a_b' }]);
  });

  it('are two where two rules have the same cache key', () => {
    const { call, top } = serve([
      { key: 'a_b', rateLimit: BANNED },
      { key: 'a', rateLimit: BANNED },
    ]);
    for (let made = 0; made < 2; made += 1) call('a_b=c\n', 'a=b_c\n');
    call('a=b_c\n');
    expect(top()).toMatchObject([
      { rule: 'shop.a', descriptor: 'a=b_c\n', limited: 3 },
      { rule: 'shop.a_b', descriptor: 'a_b=c\n', limited: 2 },
    ]);
  });

  it('are those of a domain where one is given, up to a number', () => {
    const { call, top } = serve([{ key: 'user', rateLimit: BANNED }]);
    call('user=a', 'user=b', 'user=b');
    expect(top({ domain: 'shop', limit: 1 })).toMatchObject([{ descriptor: 'user=b' }]);
    expect(top({ domain: 'other' })).toEqual([]);
  });

  it('keep the beginning of long texts, and tell texts with the same beginning apart', () => {
    const { call, top } = serve([{ key: 'user', rateLimit: BANNED }]);
    const long = 'x'.repeat(50_000);
    call(`user=${long}1`, `user=${long}2`, `user=${long}2`);
    const [most, second] = top();
    expect(most).toMatchObject({ domain: 'shop', descriptor: `user=${'x'.repeat(251)}…`, limited: 2 });
    expect(second).toMatchObject({ limited: 1 });
  });

  it('disappear after one to two periods', () => {
    const { service, call, top } = serve([{ key: 'user', rateLimit: BANNED }]);
    call('user=anna');
    service.now += 599_000;
    call('user=ben');
    service.now += 1000;
    expect(top().map(({ descriptor: text }) => text)).toEqual(['user=anna', 'user=ben']);
    call('user=ben');
    expect(top()[0]).toMatchObject({ descriptor: 'user=ben', limited: 2 });
    service.now += 600_000;
    expect(top()).toMatchObject([{ descriptor: 'user=ben', limited: 1 }]);
    service.now += 600_000;
    expect(top()).toEqual([]);
  });

  it('are counted again from zero after a jump of the clock, in either direction', () => {
    const { service, call, top } = serve([{ key: 'user', rateLimit: BANNED }]);
    call('user=anna');
    service.now += 86_400_000;
    expect(top()).toEqual([]);
    call('user=anna');
    service.now -= 86_400_000;
    expect(top()).toEqual([]);
    call('user=ben');
    expect(top()).toMatchObject([{ descriptor: 'user=ben', limited: 1 }]);
  });

  it('stay when a store answers late, after the period of its call', () => {
    const { service, call, top } = serve([{ key: 'user', rateLimit: BANNED }]);
    call('user=anna');
    service.now -= 5000;
    call('user=anna');
    expect(top()).toMatchObject([{ descriptor: 'user=anna', limited: 2 }]);
  });

  it('take a bounded number of slots, of which the heaviest callers keep theirs', () => {
    const { call, top } = serve([{ key: 'user', rateLimit: BANNED }], {}, 5);
    for (let made = 0; made < 200; made += 1) call(`user=${made}`, 'user=heavy', 'user=heavy');
    const offenders = top();
    expect(offenders).toHaveLength(5);
    expect(offenders[0]).toMatchObject({ descriptor: 'user=heavy', limited: 400 });
    expect(offenders[0]?.error).toBeLessThanOrEqual(600 / 5);
  });
});

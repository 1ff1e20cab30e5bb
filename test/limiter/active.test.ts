import { HeavyHitters } from '../../src/limiter/heavy-hitters';
import { WEEKDAYS } from '../../src/rules/unit';
import { request } from '../support/data/requests';
import { type RuleSketch, limit, unlimited } from '../support/data/rules';
import { NOW, call, codes, overall, perMinute, remaining, serve, shown } from './serve';

/** `NOW` is 10 s after midnight, on a Tuesday. */
const HOUR = 3_600_000;
const MIDNIGHT = NOW - 10_000;
const DAY = { timeZone: 'UTC', ranges: [{ days: WEEKDAYS, from: '08:00', to: '18:00' }] };
const NIGHT = { timeZone: 'UTC', ranges: [{ days: WEEKDAYS, from: '18:00', to: '08:00' }] };

describe('a limit with active hours', () => {
  it('applies only then: otherwise it is as if the rule had no limit, and nothing is counted', () => {
    const offenders = new HeavyHitters({ capacity: 10, windowSeconds: 600 });
    const rules: RuleSketch[] = [{ key: 'k', rateLimit: limit(1, 'DAY', { active: DAY }) }];
    const service = serve(rules, { offenders });
    for (let made = 0; made < 3; made += 1) expect(shown(call(service, 'k=x'))).toBe('OK 0');
    expect([call(service, 'k=x').statuses[0]?.currentLimit, service.counters.size, service.moved()]).toEqual([
      undefined,
      0,
      {},
    ]);
    service.now = MIDNIGHT + 8 * HOUR - 1;
    expect(overall(service, 'k=x', 'k=x')).toEqual(['OK', 'OK']);
    service.now += 1;
    expect(overall(service, 'k=x', 'k=x')).toEqual(['OK', 'OVER']);
    service.now = MIDNIGHT + 18 * HOUR - 1;
    expect(overall(service, 'k=x')).toEqual(['OVER']);
    service.now += 1;
    expect(overall(service, 'k=x')).toEqual(['OK']);
    expect(service.moved()).toMatchObject({ 'shop.k.total_hits': 3, 'shop.k.within_limit': 1, 'shop.k.over_limit': 2 });
  });

  it('says as its reset when the window ends, or when it stops to apply', () => {
    const service = serve([{ key: 'k', rateLimit: limit(1, 'HOUR', { unitMultiplier: 12, active: DAY }) }], {
      hasRetryAfter: true,
    });
    service.now = MIDNIGHT + 11.5 * HOUR;
    expect(call(service, 'k=x').statuses[0]?.secondsUntilReset).toBe(1800);
    service.now = MIDNIGHT + 17.5 * HOUR;
    expect(overall(service, 'k=x')).toEqual(['OK']);
    const { statuses, responseHeaders } = call(service, 'k=x');
    expect([statuses[0]?.secondsUntilReset, responseHeaders]).toEqual([1800, [{ key: 'Retry-After', value: '1800' }]]);
  });

  it('keeps its count over a pause in its window, without the hits of the pause', () => {
    const service = serve([{ key: 'k', rateLimit: limit(3, 'DAY', { active: NIGHT }) }]);
    expect(remaining(call(service, 'k=x'))).toEqual([2]);
    service.now = MIDNIGHT + 12 * HOUR;
    for (let made = 0; made < 5; made += 1) call(service, 'k=x');
    service.now = MIDNIGHT + 20 * HOUR;
    expect(remaining(call(service, 'k=x'))).toEqual([1]);
  });

  it('still matches, so that its rule exempts from the default and replaces nothing else', () => {
    const service = serve([
      { key: 'k', value: 'x', rateLimit: perMinute(0, { active: DAY }) },
      { key: 'k', rateLimit: perMinute(0) },
    ]);
    expect(overall(service, 'k=x', 'k=y')).toEqual(['OK', 'OVER']);
  });

  it.each(['sliding_window', 'token_bucket'] as const)(
    'applies only then as a %s, too, and as one of several',
    (algorithm) => {
      const several = [perMinute(1, { algorithm, active: DAY }), limit(2, 'HOUR')];
      for (const allOrNothing of [false, true]) {
        const service = serve([{ key: 'k', rateLimits: several, allOrNothing }]);
        expect(overall(service, 'k=x', 'k=x', 'k=x')).toEqual(['OK', 'OK', 'OVER']);
        service.now = MIDNIGHT + 8 * HOUR;
        expect(overall(service, 'k=x', 'k=x')).toEqual(['OK', 'OVER']);
      }
    },
  );
});

describe('limits of one window that alternate', () => {
  const rules: RuleSketch[] = [
    { key: 'k', rateLimits: [limit(1, 'DAY', { active: DAY }), limit(4, 'DAY', { active: NIGHT })] },
  ];

  it('have one counter, which is compared with the limit of the hour, also by the local cache', () => {
    const service = serve(rules, { localCacheBytes: 10_000 });
    service.now = MIDNIGHT + 8 * HOUR;
    expect(overall(service, 'k=x', 'k=x', 'k=x')).toEqual(['OK', 'OVER', 'OVER']);
    service.now = MIDNIGHT + 18 * HOUR;
    expect(shown(call(service, 'k=x'))).toBe('OK 1');
    expect(shown(call(service, 'k=x'))).toBe('OK 0');
    expect(shown(call(service, 'k=x'))).toBe('OVER 0');
    expect(service.counters.size).toBe(1);
    expect(service.moved()).toMatchObject({ 'shop.k.day.total_hits': 6 });
  });

  it('allow everything when none of them applies, and what applies may be replaced', () => {
    const monday = { timeZone: 'UTC', ranges: [{ days: ['monday'], from: '08:00', to: '18:00' }] };
    const service = serve([
      { key: 'k', rateLimits: [limit(0, 'DAY', { name: 'n', active: DAY }), limit(0, 'HOUR', { active: monday })] },
      { key: 'staff', rateLimit: unlimited({ replaces: ['n'] }) },
    ]);
    function kinds(...descriptors: readonly string[]) {
      const { resolutions } = service.limiter.begin(request('shop', descriptors), service.ruleset, service.now);
      return resolutions.map(({ kind }) => kind);
    }
    expect([kinds('k=x'), kinds('k=x', 'staff=y')]).toEqual([['inactive'], ['inactive', 'unlimited']]);
    service.now = MIDNIGHT + 12 * HOUR;
    expect([kinds('k=x'), kinds('k=x', 'staff=y')]).toEqual([['limited'], ['inactive', 'unlimited']]);
    expect(codes(call(service, 'k=x', 'staff=y'))).toEqual(['OK', 'OK']);
  });
});

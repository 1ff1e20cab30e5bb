import type { Purpose } from '../../src/counting/algorithms/algorithm';
import { UNITS } from '../../src/rules/unit';
import { descriptor, request } from '../support/data/requests';
import { atATime } from '../support/data/rules';
import { call, hits, overall, perMinute, serve, shown } from './serve';

// Reservations are in test/integration/counters/concurrent-reservations.test.ts.
describe('a limit with max_concurrent', () => {
  it('is asked by every call, which counts nothing', () => {
    const service = serve([{ key: 'k', rateLimit: atATime(3) }], { localCacheBytes: 10_000 });
    const answers = [1, 0, 500, -5].map((count) => shown(call(service, hits('k=x', count))));
    expect(answers).toEqual(['OK 3', 'OK 3', 'OK 3', 'OK 3']);
    const { statuses } = call(service, 'k=x');
    expect(statuses[0]).toMatchObject({
      secondsUntilReset: 0,
      currentLimit: { requestsPerUnit: 3, unit: { number: 0 } },
    });
    for (const purpose of ['ask', 'report'] satisfies Purpose[])
      expect(shown(service.decide({ ...request('shop', [hits('k=x', 9)]), purpose }))).toBe('OK 3');
    expect(service.counters.size).toBe(0);
    expect(service.moved()).toMatchObject({ 'shop.k.asks': 6 });
  });

  it('of 0 denies all, also when other limits allow them, except hits that are given back', () => {
    const service = serve([{ key: 'k', rateLimits: [perMinute(10), atATime(0)] }], { localCacheBytes: 10_000 });
    expect(overall(service, 'k=x', 'k=x', hits('k=x', 0), hits('k=x', -1))).toEqual(['OVER', 'OVER', 'OVER', 'OK']);
    expect(service.moved()).toMatchObject({ 'shop.k.concurrent.asks_denied': 3, 'shop.k.minute.total_hits': 2 });
  });

  it('does not keep other limits of a call from counting', () => {
    const service = serve([{ key: 'k', rateLimits: [perMinute(2), atATime(9)] }], { stopIncrementWhenOverLimit: true });
    expect(overall(service, 'k=x', 'k=x', 'k=x')).toEqual(['OK', 'OK', 'OVER']);
  });

  it('is replaced by the limit in a request', () => {
    const service = serve([{ key: 'k', rateLimit: atATime(0) }]);
    const own = descriptor('k=x', { limit: { requestsPerUnit: 2, unit: UNITS.HOUR } });
    expect([1, 2, 3].map(() => shown(call(service, own)))).toEqual(['OK 1', 'OK 0', 'OVER 0']);
  });
});

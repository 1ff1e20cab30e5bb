import { Code } from '../../src/limiter/verdict';
import { UNITS } from '../../src/rules/unit';
import { descriptor, request } from '../support/data/requests';
import { limit } from '../support/data/rules';
import { callOften, heldBy, leasedBy } from '../support/data/leased-calls';
import { hits, serve } from './serve';

const COUNTING = {
  'fixed window': {},
  'sliding window': { algorithm: 'sliding_window' },
  'token bucket': { algorithm: 'token_bucket' },
} as const;

describe.each(Object.entries(COUNTING))('a call that only reads or subtracts on a leased %s', (_, more) => {
  it.each([0, -0, -3])('shows what is left with all that is held here, and takes nothing: %s', (count) => {
    const rateLimit = limit(10_000, 'HOUR', { ...more, lease: true });
    const [leasing, exact] = (['rules', 'off'] as const).map((leases) => serve([{ key: 'k', rateLimit }], { leases }));
    for (const service of [leasing!, exact!]) callOften(service);
    const before = leasedBy(leasing!);
    expect(heldBy(leasing!)).toBeGreaterThan(0);
    const asked = request('shop', [hits('k=x', count)]);
    const [shown, expected] = [leasing!, exact!].map((service) => service.decide(asked).statuses[0]!);
    // Tokens that are held count as used at the end of their time, so that a bucket has up to 250 ms of its flow less.
    const least = expected!.limitRemaining - ('algorithm' in more && more.algorithm === 'token_bucket' ? 1 : 0);
    expect(shown!.limitRemaining).toBeLessThanOrEqual(expected!.limitRemaining);
    expect(shown!.limitRemaining).toBeGreaterThanOrEqual(least);
    expect(leasedBy(leasing!)).toEqual(before);
  });
});

it.each([
  ['rules', true, true],
  ['rules', undefined, false],
  ['auto', undefined, true],
  ['auto', false, false],
  ['off', true, false],
] as const)('with LEASES=%s, hits of a limit with `lease: %s` are leased: %s', (leases, lease, expected) => {
  const service = serve([{ key: 'k', rateLimit: limit(10_000, 'HOUR', { lease }) }], { leases });
  callOften(service);
  expect(heldBy(service) > 0).toBe(expected);
});

it('a limit of the request on the same key is not leased, and what is held is given back before', () => {
  const service = serve([{ key: 'k', rateLimit: limit(10_000, 'HOUR', { lease: true }) }], { leases: 'auto' });
  callOften(service);
  const { granted } = leasedBy(service);
  const own = descriptor('k=x', { limit: { requestsPerUnit: 81, unit: UNITS.HOUR } });
  const codes = [1, 2].map(() => service.decide(request('shop', [own])).overallCode);
  expect([codes, heldBy(service), leasedBy(service).granted]).toEqual([[Code.OK, Code.OVER_LIMIT], 0, granted]);
});

it.each(Object.entries(COUNTING))(
  'a call over a leased %s says when it may come again, also at once after another one',
  (_, more) => {
    const rateLimit = limit(60, 'HOUR', { ...more, lease: true });
    const [leasing, exact] = (['rules', 'off'] as const).map((leases) => serve([{ key: 'k', rateLimit }], { leases }));
    const statuses = [leasing!, exact!].map((service) => {
      callOften(service);
      const calls = [1, 2, 3].map(() => service.decide(request('shop', ['k=x'])).statuses[0]!);
      return calls.map((status) => ({ ...status, currentLimit: undefined }));
    });
    expect(statuses[0]).toEqual(statuses[1]);
    expect(statuses[0]!.every(({ code }) => code === Code.OVER_LIMIT)).toBe(true);
  },
);

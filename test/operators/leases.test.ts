import { Operation } from '../../src/counting/operation';
import { Code } from '../../src/limiter/verdict';
import type { CounterState } from '../../src/operators/answers';
import { descriptor, request } from '../support/data/requests';
import { callOften, heldBy, leasedBy } from '../support/data/leased-calls';
import { domainConfig, limit } from '../support/data/rules';
import { operatedWith } from './operated';

const COUNTING = {
  'fixed window': {},
  'sliding window': { algorithm: 'sliding_window' },
  'token bucket': { algorithm: 'token_bucket' },
} as const;
const QUERY = { domain: 'shop', descriptor: descriptor('k=x') };

/** A service that holds hits of a limit of 1,000 a year, of which calls have used 80. Explanations are of now. */
function leasing(more: (typeof COUNTING)[keyof typeof COUNTING] = {}) {
  const rateLimit = limit(1_000, 'YEAR', { ...more, lease: true });
  const rules = [
    { key: 'k', rateLimit },
    { key: 'exact', rateLimit: limit(1_000, 'YEAR') },
  ];
  const operated = operatedWith({ leases: 'rules' }, domainConfig('shop', ...rules));
  const { service } = operated;
  service.now = Date.now() - 400;
  callOften(service);
  return { ...operated, held: heldBy(service) };
}

it.each(Object.entries(COUNTING))(
  'of a %s, an explanation has what is leased, and decides without it',
  async (_, more) => {
    const { service, decisions, held } = leasing(more);
    const before = leasedBy(service);
    const { descriptors } = await decisions.explain(request('shop', ['k=x', 'exact=x'], 1));
    const [leased, exact] = descriptors.map(({ counter }) => counter!);
    expect(held).toBeGreaterThan(0);
    expect(leased).toMatchObject({ count: 80 + held, leased: held, countAfter: 81 });
    const change = 'the count would be 81 after 1 hit, within the limit of 1000';
    expect(descriptors[0]!.reason).toBe(`${held} of ${80 + held} hits are leased here; ${change}`);
    expect([exact!.leased, descriptors[1]!.reason]).toEqual([null, expect.not.stringContaining('leased')]);
    expect(leasedBy(service)).toEqual(before);
  },
);

it('an explanation says that what is held passes, although the limit is used up, and not with another limit', async () => {
  const { service, decisions, held } = leasing();
  const { cacheKey: key } = (await decisions.readCounter(QUERY)) as CounterState;
  const counted = { requestsPerUnit: 1_000, lengthSeconds: 31_536_000 };
  const none = { settled: () => undefined, failed: () => undefined };
  service.apply([new Operation(counted, key, 5_000)], none);
  async function explained(hits: number, limitTried?: number) {
    const { descriptors } = await decisions.explain(request('shop', ['k=x'], hits), limitTried);
    return [descriptors[0]!.counter!.count, descriptors[0]!.status!.code];
  }
  const count = 80 + held + 5_000;
  expect([await explained(1), await explained(held + 1)]).toEqual([
    [count, 'OK'],
    [count, 'OVER_LIMIT'],
  ]);
  expect(await explained(1, 70)).toEqual([count, 'OVER_LIMIT']);
  const read = service.decide(request('shop', [descriptor('k=x', { hitsAddend: 0 })])).statuses[0];
  expect(read).toMatchObject({ limitRemaining: held });
  expect(service.decide(request('shop', ['k=x'])).overallCode).toBe(Code.OK);
});

it('an explanation takes nothing, also of a key that is called often and has no lease', async () => {
  const { service, decisions } = leasing();
  const { cacheKey } = (await decisions.readCounter(QUERY)) as CounterState;
  service.release([cacheKey], () => undefined);
  expect(heldBy(service)).toBe(0);
  const before = leasedBy(service);
  for (let asked = 0; asked < 3; asked += 1) await decisions.explain(request('shop', ['k=x'], 1));
  expect(leasedBy(service)).toEqual(before);
});

it.each(Object.entries(COUNTING))('a counter of a %s has what is leased of it', async (_, more) => {
  const { decisions, held } = leasing(more);
  const isBucket = 'algorithm' in more && more.algorithm === 'token_bucket';
  const count = isBucket ? 1_000 - 80 - held : 80 + held;
  expect(await decisions.readCounter(QUERY)).toMatchObject({ count, leased: held });
  expect(await decisions.readCounter({ ...QUERY, descriptor: descriptor('exact=x') })).toMatchObject({ leased: null });
});

it.each(Object.entries(COUNTING))(
  'what is leased of a %s is given back before an operator changes it',
  async (_, more) => {
    const { service, decisions } = leasing(more);
    const isBucket = 'algorithm' in more && more.algorithm === 'token_bucket';
    const [before, after] = isBucket ? [920, 5] : [80, 995];
    expect(await decisions.changeCounter(QUERY, after)).toMatchObject({ countBefore: before, count: after, leased: 0 });
    expect(heldBy(service)).toBe(0);
    const [status] = service.decide(request('shop', ['k=x'])).statuses;
    expect(status).toMatchObject({ limitRemaining: 4 });
  },
);

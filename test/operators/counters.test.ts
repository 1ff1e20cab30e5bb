import { formatCounter } from '../../src/cli/admin/format-answers';
import { formatExplanation } from '../../src/explain/text';
import type { CounterState } from '../../src/operators/answers';
import { Code } from '../../src/limiter/verdict';
import { descriptor, request } from '../support/data/requests';
import { atATime, limit } from '../support/data/rules';
import { operated } from './operated';

it('each limit of a rule with several is explained, and its counter is shown, set and cleared by its window', async () => {
  const rateLimits = [
    limit(4, 'HOUR', { algorithm: 'sliding_window' }),
    limit(60, 'MINUTE', { unitMultiplier: 5, algorithm: 'token_bucket' }),
  ];
  const { service, decisions } = operated({ key: 'k', rateLimits });
  const query = { domain: 'shop', descriptor: descriptor('k=x') };
  service.decide(request('shop', ['k=x'], 3));
  const { descriptors } = await decisions.explain(request('shop', ['k=x'], 1));
  const { counter, otherCounters, status } = descriptors[0]!;
  expect(counter).toMatchObject({ unit: 'HOUR', count: 3, countAfter: 4 });
  expect(otherCounters).toMatchObject([{ unit: 'MINUTE', unitMultiplier: 5, count: 3, countAfter: 4 }]);
  expect(status).toMatchObject({ code: 'OK', limitRemaining: 0 });

  const reason = 'the rule has several limits; choose one by the parameter window: hour, 5minute';
  const windows = ['hour', '5minute'];
  expect(await decisions.readCounter(query)).toMatchObject({ window: 'hour', windows, count: 3 });
  for (const window of ['day', undefined]) {
    expect(await decisions.changeCounter({ ...query, window }, 1)).toEqual({ reason, nearest: null, windows });
  }
  expect(await decisions.readCounter({ ...query, window: 'day' })).toEqual({ reason, nearest: null, windows });
  const [hour, bucket] = windows.map((window) => ({ ...query, window }));
  expect(await decisions.changeCounter(hour!, 1)).toMatchObject({ countBefore: 3, count: 1 });
  expect(await decisions.readCounter(bucket!)).toMatchObject({ algorithm: 'token_bucket', count: 57 });
  expect(await decisions.changeCounter(bucket!, null)).toMatchObject({ countBefore: 57, count: 60 });
});

it('a rule with all_or_nothing is explained as a decision answers, and its counters are shown and changed', async () => {
  const rateLimits = [limit(2, 'YEAR'), limit(9, 'HOUR', { algorithm: 'sliding_window' })];
  const { service, decisions } = operated({ key: 'k', rateLimits, allOrNothing: true });
  // Explanations are of now. The year is not over before the test is, but for once in a year.
  service.now = Date.now();
  service.decide(request('shop', ['k=x'], 1));
  async function explained(hits: number) {
    const { descriptors } = await decisions.explain(request('shop', ['k=x'], hits));
    const { counter, otherCounters, status, reason } = descriptors[0]!;
    const counts = [counter!, ...otherCounters].map(({ unit, count, countAfter }) => [unit, count, countAfter]);
    return { counts, code: status!.code, left: status!.limitRemaining, reason };
  }
  expect(await explained(1)).toEqual({
    ...{ code: 'OK', left: 0, reason: 'the count would be 2 after 1 hit, within the limit of 2' },
    counts: [
      ['YEAR', 1, 2],
      ['HOUR', 1, 2],
    ],
  });
  expect(await explained(2)).toEqual({
    ...{ code: 'OVER_LIMIT', left: 1, reason: '1 of at most 2 hits count, so that 2 hits would be too many' },
    counts: [
      ['YEAR', 1, 1],
      ['HOUR', 1, 1],
    ],
  });
  const { counter } = (await decisions.explain(request('shop', ['k=x'], 1))).descriptors[0]!;
  // The window of the clock, although an algorithm decides it.
  expect(Date.parse(counter!.resetAt) - Date.parse(counter!.windowStart)).toBe(365 * 86_400_000);
  const query = { domain: 'shop', descriptor: descriptor('k=x'), window: 'year' };
  expect(await decisions.readCounter(query)).toMatchObject({ algorithm: null, count: 1, requestsPerUnit: 2 });
  expect(await decisions.changeCounter(query, 2)).toMatchObject({ countBefore: 1, count: 2 });
  expect(service.decide(request('shop', ['k=x'], 1)).overallCode).toBe(Code.OVER_LIMIT);
  expect(await decisions.changeCounter(query, null)).toMatchObject({ countBefore: 2, count: 0 });
  expect(await decisions.readCounter({ ...query, window: 'hour' })).toMatchObject({ count: 1 });
});

it('what is left in a bucket is shown, set and cleared, and explained', async () => {
  const rateLimit = limit(60, 'MINUTE', { algorithm: 'token_bucket', burst: 10 });
  const sliding = limit(60, 'MINUTE', { algorithm: 'sliding_window' });
  const { service, decisions } = operated({ key: 'k', rateLimit }, { key: 's', rateLimit: sliding });
  const query = { domain: 'shop', descriptor: descriptor('k=x') };
  const window = { domain: 'shop', descriptor: descriptor('s=x') };
  service.decide(request('shop', ['k=x', 's=x'], 3));
  const shown = { algorithm: 'token_bucket', burst: 10, requestsPerUnit: 60, timeToLive: null };
  expect(await decisions.readCounter(query)).toMatchObject({ ...shown, count: 7 });
  const ofWindow = { algorithm: 'sliding_window', burst: null, count: 3 };
  expect(await decisions.readCounter(window)).toMatchObject(ofWindow);

  async function reasonOf(hits: number): Promise<unknown> {
    const { descriptors } = await decisions.explain(request('shop', ['k=x'], hits));
    const { counter, status, reason } = descriptors[0]!;
    return [counter?.count, counter?.countAfter, status?.code, status?.limitRemaining, reason];
  }
  const within = 'the count would be 5 after 2 hits, within the limit of 10';
  expect(await reasonOf(2)).toEqual([3, 5, 'OK', 5, within]);
  const over = '3 of at most 10 hits count, so that 8 hits would be too many';
  expect(await reasonOf(8)).toEqual([3, 3, 'OVER_LIMIT', 7, over]);

  expect(await decisions.changeCounter(query, 2)).toMatchObject({ countBefore: 7, count: 2 });
  expect(service.decide(request('shop', ['k=x'], 2)).statuses[0]).toMatchObject({ limitRemaining: 0 });
  expect(await decisions.changeCounter(query, 99)).toMatchObject({ countBefore: 0, count: 10 });
  service.decide(request('shop', ['k=x'], 4));
  expect(await decisions.changeCounter(query, null)).toMatchObject({ countBefore: 6, count: 10 });
  expect(await decisions.changeCounter(window, 50)).toMatchObject({ countBefore: 3, count: 50 });
  expect(await decisions.changeCounter(window, null)).toMatchObject({ countBefore: 50, count: 0 });
});

it('how many reservations are open is shown without a reset, and cannot be set', async () => {
  const { decisions } = operated({ key: 'k', rateLimit: atATime(3) });
  const query = { domain: 'shop', descriptor: descriptor('k=x') };
  const shown = { algorithm: 'max_concurrent', unit: 'UNKNOWN', requestsPerUnit: 3, count: 0, window: 'concurrent' };
  const counter = await decisions.readCounter(query);
  expect(counter).toMatchObject({ ...shown, isInLocalCache: false });
  expect(formatCounter(counter as CounterState)).toMatch(/^0\n  limit 3 at a time\n  key /);
  const explanation = await decisions.explain(request('shop', ['k=x']));
  expect(formatExplanation(explanation)).toMatch(/\n  3 at a time\n  key /);
  const reason = 'it counts open reservations, which end by themselves or by a call';
  for (const count of [null, 2]) expect(await decisions.changeCounter(query, count)).toEqual({ reason, nearest: null });
});

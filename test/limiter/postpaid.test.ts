import type { Purpose } from '../../src/counting/algorithms/algorithm';
import { AskedLimits } from '../../src/limiter/asked-limits';
import type { LimiterOptions } from '../../src/limiter/options';
import type { Descriptor } from '../../src/limiter/request';
import type { AlgorithmName, RuleLimit } from '../../src/rules/rule-config';
import { UNITS } from '../../src/rules/unit';
import { descriptor, request } from '../support/data/requests';
import { limit } from '../support/data/rules';
import type { TestService } from '../support/data/service';
import { NOW, call, hits, perMinute, serve, shown } from './serve';

const KINDS = [undefined, 'sliding_window', 'token_bucket'] as const;

function postpaid(requests: number, algorithm?: AlgorithmName, more: Partial<RuleLimit> = {}): RuleLimit {
  return perMinute(requests, { algorithm, postpaid: true, ...more });
}

function serveLimit(rateLimit: RuleLimit, options: Partial<LimiterOptions> = {}, now = NOW): TestService {
  return serve([{ key: 'k', rateLimit }], options, now);
}

/** What calls of these hits are answered one after the other; undefined: without hits. */
function answers(service: TestService, ...counts: readonly (number | undefined)[]): readonly string[] {
  return counts.map((count) => shown(call(service, count === undefined ? 'k=x' : hits('k=x', count))));
}

/** Calls of a purpose, of a caller that has a method for each. */
function served(service: TestService, purpose: Purpose, ...descriptors: readonly (string | Descriptor)[]): string {
  return shown(service.decide({ ...request('shop', descriptors), purpose }));
}

function resetOf(service: TestService): number | undefined {
  return call(service, hits('k=x', 0)).statuses[0]!.secondsUntilReset;
}

describe.each(KINDS)('a postpaid limit with the algorithm %s', (algorithm) => {
  it('is asked by calls without hits, and counts reports also beyond the limit', () => {
    const service = serveLimit(postpaid(100, algorithm));
    const expected = ['OK 100', 'OK 40', 'OK 40', 'OK 0', 'OVER 0', 'OVER 0', 'OVER 0'];
    expect(answers(service, undefined, 60, 0, 60, undefined, 500, 0)).toEqual(expected);
    expect(service.moved()).toMatchObject({
      ...{ 'shop.k.total_hits': 620, 'shop.k.within_limit': 100, 'shop.k.over_limit': 520 },
      ...{ 'shop.k.asks': 4, 'shop.k.asks_denied': 2, 'shop.k.near_limit': 20 },
    });
  });

  it('judges each report of a pipeline window by what was left before it', () => {
    const service = serveLimit(postpaid(100, algorithm));
    const calls = [30, 0, 80, 0].map((count) => request('shop', [hits('k=x', count)]));
    const verdicts = service.decideTogether(...calls);
    expect(verdicts.map((verdict) => shown(verdict))).toEqual(['OK 70', 'OK 70', 'OK 0', 'OVER 0']);
    // What an ask is merged with is counted.
    expect(answers(service, 0)).toEqual(['OVER 0']);
  });

  it('counts nothing and has no key while it is only asked', () => {
    const service = serveLimit(postpaid(100, algorithm));
    for (let asked = 0; asked < 1_000; asked += 1) expect(answers(service, undefined)).toEqual(['OK 100']);
    expect([service.counters.size, service.moved()['shop.k.asks']]).toEqual([0, 1_000]);
  });

  it('is over when exactly all is counted, for an explicit and a missing 0', () => {
    expect(answers(serveLimit(postpaid(100, algorithm)), 100, 0, undefined, 1)).toEqual([
      ...['OK 0', 'OVER 0', 'OVER 0', 'OVER 0'],
    ]);
    expect(answers(serveLimit(perMinute(100, { algorithm })), 100, 0)).toEqual(['OK 0', 'OK 0']);
  });

  it('is over with a limit of 0, of the rule or of the request', () => {
    const service = serveLimit(postpaid(0, algorithm));
    expect(answers(service, undefined, 5, undefined)).toEqual(['OVER 0', 'OVER 0', 'OVER 0']);
    const own = { limit: { requestsPerUnit: 0, unit: UNITS.MINUTE } };
    for (const hitsAddend of [0, 5])
      expect(shown(call(serveLimit(postpaid(9, algorithm)), descriptor('k=x', { ...own, hitsAddend })))).toBe('OVER 0');
  });

  it('stays postpaid for a request with a limit of its own', () => {
    const own = { limit: { requestsPerUnit: 10, unit: UNITS.HOUR } };
    for (const rule of [
      { key: 'k', rateLimit: postpaid(1, algorithm) },
      { key: 'k', rateLimits: [postpaid(1, algorithm)] },
    ]) {
      const service = serve([rule]);
      const calls = [undefined, 60, undefined].map((hitsAddend) =>
        descriptor('k=x', { ...own, ...(hitsAddend && { hitsAddend }) }),
      );
      expect(calls.map((each) => shown(call(service, each)))).toEqual(['OK 10', 'OK 0', 'OVER 0']);
    }
  });

  it('passes 2 of 20 asks with reports of 600 and a limit of 1,000', () => {
    const service = serveLimit(postpaid(1_000, algorithm));
    let passed = 0;
    for (let turn = 0; turn < 20; turn += 1) {
      if (!answers(service, undefined)[0]!.startsWith('OK')) continue;
      passed += 1;
      answers(service, 600);
    }
    expect(passed).toBe(2);
  });

  it('answers asks by the local cache, but counts reports', () => {
    const service = serveLimit(postpaid(100, algorithm), { localCacheBytes: 1_000_000 });
    expect(answers(service, 100)).toEqual(['OK 0']);
    service.moved();
    expect(answers(service, undefined, 50)).toEqual(['OVER 0', 'OVER 0']);
    expect(service.moved()).toMatchObject({ 'shop.k.over_limit': 50, 'shop.k.asks_denied': 1 });
    expect(answers(service, -50, undefined, -1)).toEqual(['OK 0', 'OVER 0', 'OK 1']);
    expect(answers(service, undefined)).toEqual(['OK 1']);
  });

  it('is asked, and receives reports, on a plain limit by calls that say so', () => {
    const service = serveLimit(perMinute(100, { algorithm }));
    function check(): string {
      return served(service, 'ask', hits('k=x', 7));
    }
    expect([check(), served(service, 'report', hits('k=x', 99)), check(), served(service, 'report', 'k=x')]).toEqual([
      ...['OK 100', 'OK 1', 'OK 1', 'OK 0'],
    ]);
    expect([check(), served(service, 'report', hits('k=x', 9)), shown(call(service, hits('k=x', -9)))]).toEqual([
      ...['OVER 0', 'OVER 0'],
      // A bucket goes to empty and no further.
      algorithm === 'token_bucket' ? 'OK 9' : 'OK 0',
    ]);
  });
});

describe('a postpaid bucket', () => {
  it('is closed until its debt has flowed back, for a day at most', () => {
    const service = serveLimit(postpaid(10, 'token_bucket'));
    expect(answers(service, 1_000, undefined)).toEqual(['OK 0', 'OVER 0']);
    expect(resetOf(service)).toBe(5_946);
    service.now += 5_945_000;
    expect(answers(service, undefined)).toEqual(['OVER 0']);
    service.now += 1_000;
    expect(answers(service, undefined)).toEqual(['OK 1']);
    const most = serveLimit(postpaid(10, 'token_bucket'));
    answers(most, Number.MAX_SAFE_INTEGER);
    expect(resetOf(most)).toBe(86_406);
    expect(answers(most, -(10 ** 15), undefined)).toEqual(['OK 10', 'OK 10']);
  });

  it('gets back all hits that are given back, not only a burst of them', () => {
    const service = serveLimit(postpaid(10, 'token_bucket'));
    answers(service, 1_000, -990);
    expect([resetOf(service), answers(service, undefined)]).toEqual([6, ['OVER 0']]);
  });

  it('is in debt for longer than the counter of a full one is kept', () => {
    const service = serveLimit(limit(60, 'HOUR', { algorithm: 'token_bucket', postpaid: true }));
    answers(service, 660);
    service.now += 9 * 3_600_000;
    service.counters.removeExpired();
    expect(resetOf(service)).toBe(3_600 + 60);
    service.now += 3_600_000;
    service.counters.removeExpired();
    expect(answers(service, undefined)).toEqual(['OVER 0']);
  });
});

it('a postpaid sliding window never seems empty after a report that is too large for it', () => {
  const atStart = NOW - (NOW % 60_000);
  const service = serveLimit(postpaid(10, 'sliding_window'), {}, atStart);
  answers(service, 1_000_000);
  for (const seconds of [0, 59, 60, 119]) {
    service.now = atStart + seconds * 1_000;
    expect(answers(service, undefined)).toEqual(['OVER 0']);
  }
  service.now = atStart + 120_000;
  expect(answers(service, undefined, 2 ** 32 - 1, 1, undefined)).toEqual(['OK 10', 'OK 0', 'OVER 0', 'OVER 0']);
});

it('a postpaid fixed window is over, whatever is reported, when it was over before', () => {
  const service = serveLimit(postpaid(1_000));
  expect(answers(service, 5_000, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, undefined)).toEqual([
    ...['OK 0', 'OVER 0', 'OVER 0', 'OVER 0'],
  ]);
});

describe('a rule with several postpaid limits', () => {
  it('counts reports on all of them, and denies asks when any has nothing left', () => {
    const rateLimits = [postpaid(10), limit(1_000, 'DAY', { postpaid: true, algorithm: 'token_bucket' })];
    const service = serve([{ key: 'k', rateLimits }]);
    expect(answers(service, 50, undefined, 0)).toEqual(['OK 0', 'OVER 0', 'OVER 0']);
    service.now += 60_000;
    // 50 of the day, of which one has flowed back in 86.4 s.
    expect(answers(service, undefined, -10)).toEqual(['OK 10', 'OK 10']);
    expect(service.moved()).toMatchObject({ 'shop.k.day.total_hits': 50, 'shop.k.minute.total_hits': 50 });
  });

  it('counts what is reported on all of them also where a plain rule counts all or nothing', () => {
    const rateLimits = [perMinute(10), limit(20, 'DAY', { algorithm: 'sliding_window' })];
    const service = serve([{ key: 'k', rateLimits, allOrNothing: true }]);
    const reports = [15, 15].map((count) => served(service, 'report', hits('k=x', count)));
    expect([...reports, served(service, 'ask', 'k=x')]).toEqual(['OK 0', 'OVER 0', 'OVER 0']);
    service.now += 60_000;
    expect(served(service, 'ask', 'k=x')).toBe('OVER 0');
  });
});

describe('with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', () => {
  const rules = [
    { key: 'a', rateLimit: postpaid(10) },
    { key: 'b', rateLimit: postpaid(100) },
    { key: 'plain', rateLimit: perMinute(100) },
  ];

  it.each([0, 1_000_000])('a report counts on all descriptors (local cache of %d bytes)', (localCacheBytes) => {
    const service = serve(rules, { stopIncrementWhenOverLimit: true, localCacheBytes });
    call(service, hits('a=x', 10));
    const [a, b] = ['a=x', 'b=x'].map((text) => hits(text, 5));
    expect(shown(call(service, a!, b!))).toBe('OVER 0, OK 95');
    expect(shown(call(service, hits('a=x', -5), hits('b=x', -5)))).toBe('OK 0, OK 100');
  });

  it.each([0, 1_000_000])(
    'an ask that is denied keeps plain descriptors from being counted (%d)',
    (localCacheBytes) => {
      const service = serve(rules, { stopIncrementWhenOverLimit: true, localCacheBytes });
      expect(shown(call(service, 'a=x', hits('plain=x', 7)))).toBe('OK 10, OK 93');
      call(service, hits('a=x', 10));
      expect(shown(call(service, 'a=x', hits('plain=x', 7)))).toMatch(/^OVER 0, OK 93$/);
    },
  );
});

it('limits that let all asks pass are reported: those that are not postpaid, and those without reports', () => {
  const found: string[] = [];
  const asked = new AskedLimits(({ path }, why) => found.push(`${path} ${why}`));
  const blockFor = { first: 60, factor: 1, most: 60, forgottenAfter: 0 };
  const rules = [
    { key: 'k', rateLimit: postpaid(10, 'token_bucket') },
    { key: 'used', rateLimit: postpaid(10) },
    { key: 'plain', rateLimit: perMinute(10, { algorithm: 'sliding_window' }) },
    { key: 'fixed', rateLimit: perMinute(10) },
    { key: 'block', rateLimit: perMinute(10, { blockFor }) },
  ];
  const service = serve(rules, { asked });
  call(service, hits('used=x', 1), hits('plain=x', 1));
  const zeros = ['block', 'plain', 'fixed'].map((key) => hits(`${key}=x`, 0));
  for (let turn = 0; turn < 1_100; turn += 1) call(service, 'k=x', 'used=x', ...zeros);
  expect(found).toEqual(['shop.plain not_postpaid', 'shop.k not_reported']);
});

it('a report without hits of its own has those of the request, and 1 where it is one by its purpose', () => {
  const service = serveLimit(postpaid(100));
  expect(shown(service.decide(request('shop', ['k=x'], 30)))).toBe('OK 70');
  expect(shown(service.decide({ ...request('shop', ['k=x']), purpose: 'report' }))).toBe('OK 69');
  expect(shown(service.decide({ ...request('shop', ['k=x'], 30), purpose: 'ask' }))).toBe('OK 69');
});

it('what is leased is not used by reports, and is left for asks of the instance that holds it', () => {
  const service = serve(
    [
      { key: 'k', rateLimit: perMinute(100_000) },
      { key: 'p', rateLimit: postpaid(100_000) },
    ],
    {
      leases: 'auto',
    },
  );
  for (let turn = 0; turn < 400; turn += 1) {
    service.now += 1;
    service.decideTogether(...['k=x', 'k=x', 'p=x', 'p=x'].map((text) => request('shop', [hits(text, 1)])));
  }
  const before = service.moved();
  expect(before['ratelimit.lease.used']).toBeGreaterThan(0);
  const [left, other] = ['k=x', 'p=x'].map((text) => served(service, 'ask', text));
  expect([left, other]).toEqual(['OK 99200', 'OK 99200']);
  expect(served(service, 'report', hits('k=x', 2))).toMatch(/^OK/);
  expect(service.moved()).not.toHaveProperty('ratelimit.lease.used');
  expect(served(service, 'ask', 'k=x')).toBe('OK 99198');
});

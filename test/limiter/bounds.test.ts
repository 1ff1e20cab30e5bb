import type { DecisionError } from '../../src/counting/decision-error';
import { MAX_MATCHING_STEPS, MAX_TEXT, type RateLimitRequest } from '../../src/limiter/request';
import { Code } from '../../src/limiter/verdict';
import { UnmatchedCalls } from '../../src/limiter/unmatched-calls';
import { unitByName } from '../../src/rules/unit';
import { descriptor, request } from '../support/data/requests';
import { type RuleSketch, limit, rulesetOf, unlimited } from '../support/data/rules';
import type { TestService } from '../support/data/service';
import { call, hits, perMinute, rule, serve } from './serve';

const RULES: readonly RuleSketch[] = [rule(5), { key: 'free', rateLimit: unlimited() }];

function numbered<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

/** The error of a request, of which nothing else may be counted. */
function refusal(service: TestService, refused: RateLimitRequest): string {
  const { size } = service.counters;
  service.moved();
  let error: Partial<DecisionError> = {};
  try {
    service.decide(refused);
  } catch (thrown) {
    error = thrown as DecisionError;
  }
  expect(service.moved()).toEqual({ 'ratelimit.service.call.should_rate_limit.service_error': 1 });
  expect(service.counters.size).toBe(size);
  return `${error.code}: ${error.message}`;
}

describe('a request', () => {
  function manyEntries(count: number) {
    return numbered(count, () => 'free=x').join(',');
  }
  const wrongUnit = descriptor('k=x', { limit: { requestsPerUnit: 1, unit: undefined } });
  const MANY_HITS = hits('k=x', 2 ** 53);
  const MANY = numbered(1001, () => 'k=x');
  const LARGE = ['k=x', ...numbered(100, () => manyEntries(100))];
  const LONG = ['d'.repeat(MAX_TEXT - 2), 'k=vv'] as const;

  const rejected: Readonly<Record<string, readonly [domain: string, ...Parameters<typeof call>[1][]]>> = {
    'invalid_request: rate limit domain must not be empty': ['', 'k=x'],
    'invalid_request: rate limit descriptor list must not be empty': ['shop'],
    'invalid_request: descriptor 2 has an entry without a key': ['shop', 'k=x', '=y'],
    'invalid_request: hits_addend of descriptor 2 exceeds the largest count, 2^53 - 1': ['shop', 'k=x', MANY_HITS],
    'invalid_request: the limit of descriptor 2 has no valid unit': ['shop', 'k=x', wrongUnit],
    'invalid_request: a request may have at most 1000 descriptors, this one has 1001': ['shop', ...MANY],
    'too_much_work: a descriptor may have at most 100 entries, descriptor 2 has 101': ['shop', 'k=x', manyEntries(101)],
    'too_much_work: the descriptors of a request may have at most 10000 entries, these have 10001': ['shop', ...LARGE],
    'too_much_work: the domain, keys and values of a request may have at most 262144 characters, these have 262145':
      LONG,
  };
  it.each(Object.entries(rejected))(
    'is rejected, and only the error is counted: %s',
    (message, [domain, ...descriptors]) => {
      expect(refusal(serve(RULES), request(domain, descriptors))).toBe(message);
    },
  );

  it('may be as large as each of the bounds', () => {
    const service = serve(RULES);
    const values = 'v'.repeat(MAX_TEXT - 'shopfreexk'.length);
    for (const descriptors of [
      numbered(1000, () => 'free=x'),
      numbered(100, () => manyEntries(100)),
      ['free=x', `k=${values}`],
      [hits('free=x', 2 ** 53 - 1)],
    ]) {
      expect(call(service, ...descriptors).overallCode).toBe(Code.OK);
    }
  });

  it('is rejected as such even if no configuration is loaded', () => {
    const service = serve([]);
    service.ruleset = undefined;
    expect(refusal(service, request('', ['k=x']))).toContain('domain must not be empty');
    expect(refusal(service, request('shop', ['k=x']))).toBe('no_configuration: no rate limit configuration loaded');
  });
});

describe('the steps of matching a request', () => {
  const tooMuch = `too_much_work: matching the request with the rules takes more than ${MAX_MATCHING_STEPS} steps`;

  it('are bounded for all descriptors together, from zero for each request; nothing of one above is counted', () => {
    // Each value is searched for the part of each pattern.
    const chain = numbered(1000, (index) => ({ key: 'path', value: `*x${index}*`, rateLimit: perMinute(index) }));
    const service = serve([...RULES, ...chain]);
    const paths = numbered(110, (index) => `path=${'a'.repeat(100)}${index}`);
    for (const path of paths) expect(call(service, path).overallCode).toBe(Code.OK);
    expect(refusal(service, request('shop', ['free=x', 'k=x', ...paths]))).toBe(tooMuch);
  });

  it('include the names in `replaces`, once for each rule', () => {
    const replaces = numbered(10_000, (index) => `name-${index}`);
    const rules = numbered(27, (index) => rule(5, { value: `v${index}`, rateLimit: perMinute(5, { replaces }) }));
    const service = serve(rules.map((each) => structuredClone(each)));
    expect(call(service, ...numbered(1000, () => 'k=v0')).statuses).toHaveLength(1000);
    const all = numbered(27, (index) => `k=v${index}`);
    expect(call(service, ...all.slice(1)).statuses).toHaveLength(26);
    expect(refusal(service, request('shop', all))).toBe(tooMuch);
  });
});

describe('calls to which no rule applies', () => {
  const SECOND = 1000;
  const HOUR = 3600 * SECOND;
  const rules: readonly RuleSketch[] = [
    { key: 'user', value: 'anna', rateLimit: perMinute(1) },
    { key: 'free', rateLimit: unlimited() },
    { key: 'exempt' },
    { key: 'parent', descriptors: [{ key: 'child', rateLimit: perMinute(1) }] },
  ];

  /** From the beginning of an hour on. */
  function watch() {
    const reported: string[] = [];
    const unmatched = new UnmatchedCalls(({ domain, descriptors: [first] }) => {
      reported.push(`${domain.slice(0, 20)} ${first?.entries.map(({ key }) => key.slice(0, 20)).join(',')}`);
    });
    const service = serve(rules, { unmatched }, 1_699_920_000_000);
    function callAfter(milliseconds: number, domain: string, ...descriptors: readonly string[]) {
      service.now += milliseconds;
      service.decide(request(domain, descriptors));
    }
    return { service, reported, callAfter };
  }

  it('are counted, once per call, without those of a limit of their own, an exempting, an unlimited or a limiting rule', () => {
    const { service, reported, callAfter } = watch();
    const override = descriptor('x=y', { limit: { requestsPerUnit: 1, unit: unitByName('DAY') } });
    for (const one of [override, 'exempt=x', 'free=x', 'user=anna']) call(service, 'other=x', one);
    expect([service.moved()['ratelimit.service.no_match'], reported]).toEqual([undefined, []]);
    callAfter(0, 'shop', 'user=ben', 'other=x');
    callAfter(0, 'shop', 'parent=x');
    callAfter(0, 'shop', 'user=anna,plan=free');
    callAfter(0, 'nowhere', 'user=anna', 'user=ben');
    const unknown = { 'ratelimit.service.unknown_domain': 1, 'nowhere.domain_not_found': 2 };
    expect(service.moved()).toEqual({ 'ratelimit.service.no_match': 3, ...unknown });
  });

  it('are reported once per domain, keys, hour and ruleset, whatever the values; one per second is examined', () => {
    const { service, reported, callAfter } = watch();
    callAfter(0, 'shop', 'user=ben');
    callAfter(0, 'shop', 'skipped=1');
    callAfter(SECOND, 'shop', 'user=eva');
    callAfter(SECOND, 'shop', 'user=eva,plan=x');
    callAfter(SECOND, 'nowhere', 'user=eva');
    callAfter(SECOND, 'nowhere', 'user=ben');
    expect(reported).toEqual(['shop user', 'shop user,plan', 'nowhere user']);
    callAfter(HOUR - 5 * SECOND, 'shop', 'user=x');
    expect(reported).toHaveLength(3);
    callAfter(SECOND, 'shop', 'user=x');
    expect(reported.slice(3)).toEqual(['shop user']);
    service.ruleset = rulesetOf('shop', ...rules);
    callAfter(SECOND, 'shop', 'user=x');
    expect(reported.slice(4)).toEqual(['shop user']);
  });

  it('are reported at most five times per minute, and a hundred times per hour, with bounded memory of each', () => {
    const { service, reported, callAfter } = watch();
    for (let second = 0; second < 50; second += 1) callAfter(SECOND, 'shop', `key${second}=x`);
    expect(reported).toHaveLength(5);
    for (let minute = 1; minute < 59; minute += 1) {
      service.now = 1_699_920_000_000 + minute * 60 * SECOND;
      const domain = `${'x'.repeat(10_000)}${minute}`;
      for (let each = 0; each < 5; each += 1) callAfter(SECOND, domain, `${minute}-${each}=x`);
    }
    expect(reported).toHaveLength(100);
  });
});

it('a limit of a rule is counted by the second, whatever the milliseconds', () => {
  const service = serve([{ key: 'k', rateLimit: limit(1, 'SECOND') }], {}, 1_699_920_000_999);
  expect(call(service, 'k=x').statuses[0]?.secondsUntilReset).toBe(1);
});

import { type DecisionError } from '../../src/limiter/decision-error';
import type { RateLimitRequest } from '../../src/limiter/request';
import { MAX_MATCHING_STEPS, MAX_TEXT } from '../../src/limiter/request-bounds';
import { Code } from '../../src/limiter/verdict';
import type { JsonObject } from '../../src/rules/rule-config';
import { descriptor, request } from '../support/data/requests';
import { limit, type RuleSketch, rulesetOf, unlimited } from '../support/data/rules';
import { TestService } from '../support/data/service';

const services: TestService[] = [];
function serve(rules: readonly RuleSketch[], dynamicMetadata = false): TestService {
  const service = new TestService(rulesetOf('shop', ...rules), { dynamicMetadata });
  services.push(service);
  return service;
}
afterEach(() => Promise.all(services.splice(0).map((service) => service.close())));

function numbered<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

/** The error of a request, and everything that was counted for it, in statistics and in the store. */
function refusal(service: TestService, refused: RateLimitRequest) {
  service.moved();
  let error: Partial<DecisionError> = {};
  try {
    service.decide(refused);
  } catch (thrown) {
    error = thrown as DecisionError;
  }
  return { code: error.code, message: error.message, counted: service.moved(), keys: service.counters.size };
}

const ONLY_THE_ERROR = { 'ratelimit.service.call.should_rate_limit.service_error': 1 };
const RULES: readonly RuleSketch[] = [
  { key: 'free', rateLimit: unlimited() },
  { key: 'k', rateLimit: limit(5, 'MINUTE') },
];

describe('the text of a request', () => {
  /** A request whose domain, keys and values have this many characters, in two descriptors. */
  function withText(length: number) {
    const value = 'v'.repeat(length - 'shop'.length - 'free'.length - 'x'.length - 'k'.length);
    return request('shop', ['free=x', `k=${value}`]);
  }

  it('may have as many characters as the maximum', () => {
    expect(serve(RULES).decide(withText(MAX_TEXT)).overallCode).toBe(Code.OK);
  });

  it('is rejected with one character more, and nothing of the request is counted', () => {
    expect(refusal(serve(RULES), withText(MAX_TEXT + 1))).toEqual({
      code: 'too_much_work',
      message: 'the domain, keys and values of a request may have at most 262144 characters, these have 262145',
      counted: ONLY_THE_ERROR,
      keys: 0,
    });
  });

  it('includes the domain, also one without rules', () => {
    const { code, counted } = refusal(serve(RULES), request('d'.repeat(MAX_TEXT), ['k=v']));
    expect([code, counted]).toEqual(['too_much_work', ONLY_THE_ERROR]);
  });
});

describe('the steps of matching a request', () => {
  // Each position of a value of `a` ends one more part of a pattern.
  const chain = numbered(1000, (index) => ({
    key: 'path',
    value: `*${'a'.repeat(index + 1)}*x*`,
    rateLimit: limit(index, 'HOUR'),
  }));

  it('are bounded for all descriptors together, and nothing of a request that exceeds them is counted', () => {
    const service = serve([...RULES, ...chain]);
    const value = 'a'.repeat(100);
    expect(service.decide(request('shop', [`path=${value}`])).overallCode).toBe(Code.OK);
    const many = numbered(100, (index) => `path=${value}${index}`);
    expect(refusal(service, request('shop', ['free=x', 'k=x', ...many]))).toEqual({
      code: 'too_much_work',
      message: `matching the request with the rules takes more than ${MAX_MATCHING_STEPS} steps`,
      counted: ONLY_THE_ERROR,
      keys: 0,
    });
  });

  it('start at zero for the next request', () => {
    const service = serve([...RULES, ...chain]);
    for (let round = 0; round < 100; round += 1) {
      expect(service.decide(request('shop', [`path=${'a'.repeat(100)}${round}`])).overallCode).toBe(Code.OK);
    }
  });

  it('include the names in `replaces`, once for each rule', () => {
    const names = numbered(10_000, (index) => `name-${index}`);
    const service = serve(
      numbered(100, (index) => ({
        key: 'k',
        value: `v${index}`,
        rateLimit: limit(5, 'HOUR', { name: `rule-${index}`, replaces: [...names] }),
      })),
    );
    const sameRule = numbered(1000, () => 'k=v0');
    expect(service.decide(request('shop', sameRule)).statuses).toHaveLength(1000);
    const { code, counted } = refusal(
      service,
      request(
        'shop',
        numbered(100, (index) => `k=v${index}`),
      ),
    );
    expect([code, counted]).toEqual(['too_much_work', ONLY_THE_ERROR]);
  });
});

describe('the metadata of many rules', () => {
  const rules = numbered(3, (index) => ({
    key: `k${index}`,
    rateLimit: limit(5, 'HOUR'),
    metadata: { shared: { first: index, deep: { [`of${index}`]: index } }, [`own${index}`]: true },
  }));

  it('is merged in the order of the request, and the rules keep theirs', () => {
    const service = serve(rules, true);
    function merged(...order: readonly string[]): unknown {
      const descriptors = order.map((each) => descriptor(`${each}=v`));
      return (service.decide(request('shop', descriptors)).dynamicMetadata as JsonObject)['metadata'];
    }
    const all = { shared: { first: 0, deep: { of0: 0, of1: 1, of2: 2 } }, own0: true, own1: true, own2: true };
    expect(merged('k0', 'k1', 'k0', 'k2')).toEqual(all);
    expect(merged('k1', 'k2')).toEqual({
      shared: { first: 1, deep: { of1: 1, of2: 2 } },
      own1: true,
      own2: true,
    });
    expect(merged('k0')).toEqual({ shared: { first: 0, deep: { of0: 0 } }, own0: true });
  });
});

import fc from 'fast-check';
import type { RateLimitRequest } from '../../src/limiter/request';
import { Code, type Verdict } from '../../src/limiter/verdict';
import { buildRuleset } from '../../src/rules/ruleset';
import { someOptions, someRequest, someRules } from '../support/data/explained-requests';
import { descriptor, request } from '../support/data/requests';
import { limit as limitOf, rulesetOf } from '../support/data/rules';
import { TestService } from '../support/data/service';

/** What a decision would answer, according to an explanation. */
function explained(service: TestService, asked: RateLimitRequest): Verdict {
  const explanation = service.limiter.explain(asked, service.ruleset, service.now);
  const reads = explanation.operations.map(({ key, windowSeconds, limit }) => {
    return { key, windowSeconds, limit, hits: 0, guard: undefined, after: 0 };
  });
  let isRead = false;
  service.apply(reads, { settled: () => (isRead = true), failed: () => undefined });
  expect(isRead).toBe(true);
  return explanation.verdict(new Map(reads.map(({ key, after }) => [key, after])));
}

it('an explanation agrees with the decision that follows it, and counts nothing', () => {
  const scenario = fc.record({
    rules: someRules,
    options: someOptions,
    requests: fc.array(someRequest('d'), { minLength: 1, maxLength: 12 }),
  });
  fc.assert(
    fc.property(scenario, ({ rules, options, requests }) => {
      const service = new TestService(buildRuleset([{ domain: 'd', descriptors: rules }]), options);
      const reference = new TestService(buildRuleset([{ domain: 'd', descriptors: rules }]), options);
      for (const each of requests) {
        const expected = explained(service, each);
        const again = explained(service, each);
        expect(again).toEqual(expected);
        expect(service.moved()).toEqual({});
        const decided = service.decide(each);
        expect(expected).toEqual(decided);
        // Explanations between decisions change no decision and no statistic.
        expect(reference.decide(each)).toEqual(decided);
        expect(service.moved()).toEqual(reference.moved());
      }
      void service.close();
      void reference.close();
    }),
    { numRuns: 100 },
  );
});

it('hits that the request itself subtracts first remove the counter from the local cache', () => {
  const service = new TestService(rulesetOf('d', { key: 'k', rateLimit: limitOf(1, 'YEAR') }), {
    localCacheBytes: 10_000,
  });
  for (let calls = 0; calls < 3; calls += 1) service.decide(request('d', ['k=v']));
  expect(explained(service, request('d', ['k=v'])).overallCode).toBe(Code.OVER_LIMIT);
  const both = request('d', [descriptor('k=v', { isNegativeHits: true, hitsAddend: 5 }), 'k=v']);
  const expected = explained(service, both);
  expect(expected.overallCode).toBe(Code.OK);
  expect(service.decide(both)).toEqual(expected);
  void service.close();
});

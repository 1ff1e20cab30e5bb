import fc from 'fast-check';
import type { RateLimitRequest } from '../../src/limiter/request';
import type { Verdict } from '../../src/limiter/verdict';
import { buildRuleset } from '../../src/rules/ruleset';
import { someOptions, someRequest, someRules } from '../support/data/explained-requests';
import { TestService } from '../support/data/service';

/** What a decision would answer, according to an explanation. */
function explained(service: TestService, request: RateLimitRequest): Verdict {
  const explanation = service.limiter.explain(request, service.ruleset, service.now);
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
      for (const request of requests) {
        const expected = explained(service, request);
        const again = explained(service, request);
        expect(again).toEqual(expected);
        expect(service.moved()).toEqual({});
        const decided = service.decide(request);
        expect(expected).toEqual(decided);
        // Explanations between decisions change no decision and no statistic.
        expect(reference.decide(request)).toEqual(decided);
        expect(service.moved()).toEqual(reference.moved());
      }
      void service.close();
      void reference.close();
    }),
    { numRuns: 100 },
  );
});

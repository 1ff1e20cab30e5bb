import fc from 'fast-check';
import { asyncScheduler } from 'rxjs';
import { Limiter } from '../../../src/limiter/limiter';
import type { RateLimitRequest } from '../../../src/limiter/request';
import type { Verdict } from '../../../src/limiter/verdict';
import { buildRuleset } from '../../../src/rules/ruleset';
import { Statistics } from '../../../src/statistics/statistics';
import { decisions } from '../../../src/streams/decisions';
import type { Counters } from '../../../src/streams/ports/counters';
import { someOptions, someRequest, someRules } from '../../support/data/explained-requests';
import { DEFAULT_OPTIONS } from '../../support/data/service';

let domains = 0;

const SCENARIO = fc.record({
  rules: someRules,
  options: someOptions,
  requests: fc.array(someRequest('d'), { minLength: 2, maxLength: 8 }),
});

/** Explanations on a counter store. @param store called when a scenario begins */
export function explanationScenarios(store: () => Counters): void {
  it('an explanation agrees with the decision that follows it', async () => {
    await fc.assert(
      fc.asyncProperty(SCENARIO, async ({ rules, options, requests }) => {
        domains += 1;
        const domain = `explained${domains}`;
        const ruleset = buildRuleset([{ domain, descriptors: rules }]);
        const statistics = new Statistics(1000);
        const limiter = new Limiter({ ...DEFAULT_OPTIONS, ...options }, statistics);
        const path = decisions({
          limiter,
          ruleset: () => ruleset,
          counters: store(),
          statistics,
          scheduler: asyncScheduler,
          onInternalError: (error) => {
            throw error;
          },
        });
        const subscription = path.windows$.subscribe();

        async function explained(request: RateLimitRequest): Promise<Verdict> {
          const explanation = limiter.explain(request, ruleset, Date.now());
          const reads = explanation.operations.map(({ key, windowSeconds, limit }) => {
            return { key, windowSeconds, limit, hits: 0, guard: undefined, after: 0 };
          });
          await new Promise<void>((settled, failed) => path.apply(reads, { settled, failed }));
          return explanation.verdict(new Map(reads.map(({ key, after }) => [key, after])));
        }
        function decided(request: RateLimitRequest): Promise<Verdict> {
          return new Promise((verdict, error) => path.decide(request, { verdict, error }));
        }

        for (const request of requests) {
          const own = { ...request, domain };
          const expected = await explained(own);
          expect(withoutReset(expected)).toEqual(withoutReset(await decided(own)));
        }
        subscription.unsubscribe();
      }),
      { numRuns: 12 },
    );
  });
}

/** A second may pass between an explanation and the decision. */
function withoutReset({ overallCode, statuses }: Verdict): object {
  return { overallCode, statuses: statuses.map((status) => ({ ...status, secondsUntilReset: 0 })) };
}

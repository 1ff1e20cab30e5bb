import type { CounterChange, CounterState } from '../../src/operators/answers';
import { OperatedCounters } from '../../src/operators/counters';
import { formatCounter } from '../../src/cli/admin/format-answers';
import type { RuleSketch } from '../support/data/rules';
import { descriptor } from '../support/data/requests';
import { NOW, overall, perMinute, serve } from '../limiter/serve';

const BLOCK = { first: 120, factor: 2, most: 3600, forgottenAfter: 86_400 };

describe.each([undefined, 'sliding_window', 'token_bucket'] as const)(
  'a blocked counter with the algorithm %s',
  (algorithm) => {
    const rules: readonly RuleSketch[] = [{ key: 'k', rateLimit: perMinute(2, { algorithm, blockFor: BLOCK }) }];
    const query = { domain: 'shop', descriptor: descriptor('k=x') };

    function blocked() {
      const service = serve(rules, { localCacheBytes: 10_000 });
      const forgotten: string[] = [];
      const counters = new OperatedCounters({
        ...{ limiter: service.limiter, administration: service.counters, reservations: 'none', apply: service.apply },
        onForgotten: (key) => void forgotten.push(key),
      });
      jest.spyOn(Date, 'now').mockImplementation(() => service.now);
      expect(overall(service, 'k=x', 'k=x', 'k=x', 'k=x')).toEqual(['OK', 'OK', 'OVER', 'OVER']);
      return { service, counters, forgotten };
    }
    afterEach(() => jest.restoreAllMocks());

    it('is shown with its end, in words, too', async () => {
      const { service, counters } = blocked();
      const state = (await counters.read(query, service.ruleset)) as CounterState;
      const until = new Date(NOW + 120_000).toISOString();
      expect(state).toMatchObject({ block: { until, seconds: 120 }, isInLocalCache: true, blockFor: BLOCK });
      expect(formatCounter(state)).toContain(`\n  blocked until ${until}, for 2m\n`);
      service.now += 120_000;
      expect(await counters.read(query, service.ruleset)).toMatchObject({ block: null, isInLocalCache: false });
    });

    it.each([
      [null, ['OK', 'OK', 'OVER']],
      [1, ['OK', 'OVER', 'OVER']],
    ])('is free after it was set to %s, also for the local caches', async (count, then) => {
      const { service, counters, forgotten } = blocked();
      const changed = (await counters.change(query, count, service.ruleset)) as CounterChange;
      expect(changed).toMatchObject({
        block: null,
        isInLocalCache: false,
        count: algorithm === 'token_bucket' && count === null ? 2 : (count ?? 0),
      });
      expect(forgotten).toEqual(['{_shop_k_x_}blocked_60']);
      expect(overall(service, 'k=x', 'k=x', 'k=x')).toEqual(then);
      // Nothing is remembered of a block that was ended.
      const state = (await counters.read(query, service.ruleset)) as CounterState;
      expect(state.block?.seconds).toBe(120);
    });
  },
);

import fc from 'fast-check';
import { NEVER, of } from 'rxjs';
import { DecisionError } from '../../src/limiter/decision-error';
import { Limiter } from '../../src/limiter/limiter';
import { LARGEST_COUNT } from '../../src/limiter/counter-operation';
import type { Descriptor } from '../../src/limiter/request';
import { Statistics } from '../../src/statistics/statistics';
import { decisions } from '../../src/streams/decisions';
import type { CountedOperation, Counters } from '../../src/streams/ports/counters';
import type { WindowTracer } from '../../src/streams/ports/tracer';
import { turnScheduler } from '../../src/sources/event-loop-turns';
import { descriptor, request } from '../support/data/requests';
import { limit, rulesetOf } from '../support/data/rules';
import { DEFAULT_OPTIONS, TestService } from '../support/data/service';

const ruleset = rulesetOf('shop', { key: 'k', rateLimit: limit(10, 'MINUTE') }, { key: 'free' });

function path(countNow: Counters['countNow'], tracer?: WindowTracer) {
  const statistics = new Statistics(10);
  const gathered: string[] = [];
  const internalErrors: unknown[] = [];
  const { decide, windows$ } = decisions({
    limiter: new Limiter(DEFAULT_OPTIONS, statistics),
    ruleset: () => ruleset,
    counters: {
      laneOf: ({ key }) => {
        gathered.push(key);
        return {
          pipeline: { span: 0, windowsInFlight: 1, whenFull: undefined },
          instance: { lanesAtOnce: 1 },
          retired$: NEVER,
          apply: () => NEVER,
        };
      },
      countNow,
      connected$: of(true),
      close: () => Promise.resolve(),
    },
    statistics,
    scheduler: turnScheduler,
    tracer,
    onInternalError: (error) => internalErrors.push(error),
  });
  const subscription = windows$.subscribe();
  function outcome(value: string): string {
    let result = 'none';
    decide(request('shop', [`k=${value}`]), {
      verdict: ({ statuses }) => {
        result = `${statuses[0]?.limitRemaining} left`;
      },
      error: ({ code }) => {
        result = code;
      },
    });
    return result;
  }
  return { outcome, statistics, gathered, internalErrors, close: () => subscription.unsubscribe() };
}

function setCount(after: number) {
  return (operations: readonly CountedOperation[]): void => {
    for (const operation of operations) operation.after = after;
  };
}

describe('a store that counts at once', () => {
  it('answers each request before decide returns, without a window', () => {
    const { outcome, gathered, close } = path(setCount(4));
    expect([outcome('a'), outcome('b')]).toEqual(['6 left', '6 left']);
    expect(gathered).toEqual([]);
    close();
  });

  it('fails the request for which it throws with its error, and counts a store error', () => {
    const { outcome, statistics, internalErrors, close } = path(() => {
      throw new DecisionError('store_timeout', 'too late');
    });
    expect(outcome('a')).toBe('store_timeout');
    expect(statistics.counter('ratelimit.service.call.should_rate_limit.redis_error').value).toBe(1);
    expect(internalErrors).toEqual([]);
    close();
  });

  it('reports what else it throws as an internal error', () => {
    const bug = new TypeError('a bug');
    const { outcome, internalErrors, close } = path(() => {
      throw bug;
    });
    expect(outcome('a')).toBe('store_failed');
    expect(internalErrors).toEqual([bug]);
    close();
  });

  it('gathers windows when they are traced', () => {
    const { outcome, gathered, close } = path(setCount(4), { beginWindow: () => ({ ended: () => undefined }) });
    expect(outcome('a')).toBe('none');
    expect(gathered).toHaveLength(1);
    close();
  });
});

const hits = fc.oneof(fc.integer({ min: 0, max: 6 }), fc.constant(LARGEST_COUNT));
const anyDescriptor = fc
  .record({ text: fc.constantFrom('k=a', 'k=b', 'free=a', 'none=a'), hitsAddend: hits, isNegativeHits: fc.boolean() })
  .map(({ text, ...more }): Descriptor => descriptor(text, more));

it.each([
  ['by default', {}],
  ['with a local cache', { localCacheBytes: 100_000 }],
  ['under STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', { stopIncrementWhenOverLimit: true }],
])('the memory store gives the verdicts and statistics of windows with one request each: %s', async (_, options) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(anyDescriptor, { minLength: 1, maxLength: 4 }), { maxLength: 12 }),
      async (all) => {
        const [atOnce, gathered] = [0, 1].map((span) => new TestService(ruleset, options, 1_000_000_000_000, span));
        try {
          for (const descriptors of all) {
            const one = request('shop', descriptors);
            expect(atOnce!.decide(one)).toEqual(gathered!.decide(one));
            expect(atOnce!.moved()).toEqual(gathered!.moved());
          }
        } finally {
          await atOnce!.close();
          await gathered!.close();
        }
      },
    ),
    { numRuns: 200 },
  );
});

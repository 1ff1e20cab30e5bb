import { type Observable, Subject, ignoreElements, map, of, throwError } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import { LARGEST_COUNT } from '../../src/limiter/counter-operation';
import { DecisionError } from '../../src/limiter/decision-error';
import { Limiter } from '../../src/limiter/limiter';
import { Code } from '../../src/limiter/verdict';
import { Statistics } from '../../src/statistics/statistics';
import type { CounterLane } from '../../src/streams/ports/counters';
import { type Decisions, decisions } from '../../src/streams/decisions';
import { descriptor, request } from '../../test/support/data/requests';
import { limit, rulesetOf } from '../../test/support/data/rules';
import { DEFAULT_OPTIONS } from '../../test/support/data/service';
import { marbles } from '../support/marbles';
import { ScriptedLane, storeOf } from '../support/scripted-lanes';

const ruleset = rulesetOf('shop', { key: 'k', rateLimit: limit(10, 'MINUTE') }, { key: 'free' });

function path(lane: CounterLane, scheduler: TestScheduler) {
  const statistics = new Statistics(10);
  const internalErrors: unknown[] = [];
  const made = decisions({
    limiter: new Limiter(DEFAULT_OPTIONS, statistics),
    ruleset: () => ruleset,
    counters: storeOf(() => lane),
    statistics,
    scheduler,
    onInternalError: (error) => internalErrors.push(error),
  });
  return { ...made, statistics, internalErrors };
}

/** The outcome of each request: what is left of its limit, or the code of its error. */
function outcomes({ decide }: Decisions, requests$: Observable<string>): Observable<string> {
  const outcomes$ = new Subject<string>();
  requests$.subscribe((value) =>
    decide(request('shop', [`k=${value}`]), {
      verdict: ({ overallCode, statuses }) =>
        outcomes$.next(`${value}:${overallCode === Code.OK ? statuses[0]?.limitRemaining : 'over'}`),
      error: (error) => outcomes$.next(`${value}:${error.code}`),
    }),
  );
  return outcomes$;
}

function errorsCounted(kind: string, { statistics }: { statistics: Statistics }): number | undefined {
  return new Map(statistics.entries()).get(`ratelimit.service.call.should_rate_limit.${kind}`);
}

describe('the decision path', () => {
  it('gathers requests into a window, merges them by key, and gives each its own count', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests = cold('aab----');
      const reply = cold('       --(r|)', { r: [7, 1] });
      const expected = '      -----(xyz)';
      const store = new ScriptedLane(() => reply);
      const service = path(store, scheduler);
      service.windows$.subscribe();
      expectObservable(outcomes(service, requests)).toBe(expected, { x: 'a:4', y: 'a:3', z: 'b:9' });
      flush();
      expectSubscriptions(reply.subscriptions).toBe('---^-!');
      expect(store.sent).toEqual(['a+2 b+1']);
    });
  });

  it('gives every request of a window on a saturated counter the verdict over the limit', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests = cold('aab----');
      const reply = cold('       --(r|)', { r: [LARGEST_COUNT, LARGEST_COUNT] });
      const expected = '      -----(xxy)';
      const store = new ScriptedLane(() => reply);
      const service = path(store, scheduler);
      service.windows$.subscribe();
      expectObservable(outcomes(service, requests)).toBe(expected, { x: 'a:over', y: 'b:over' });
      expectSubscriptions(reply.subscriptions).toBe('---^-!');
      flush();
      expect(store.sent).toEqual(['a+2 b+1']);
      expect(errorsCounted('redis_error', service)).toBe(0);
    });
  });

  it('sends hits that would saturate a counter when merged as operations of their own', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests = cold('(alaa)--');
      const expected = '      ---(wxyz)';
      const store = new ScriptedLane(() => of([1, LARGEST_COUNT, LARGEST_COUNT]));
      const service = path(store, scheduler);
      service.windows$.subscribe();
      const hits$ = requests.pipe(map((value) => (value === 'l' ? LARGEST_COUNT : 1)));
      const outcomes$ = new Subject<Code>();
      hits$.subscribe((hitsAddend) => {
        service.decide(request('shop', [descriptor('k=a', { hitsAddend })]), {
          verdict: ({ overallCode }) => outcomes$.next(overallCode),
          error: (error) => outcomes$.error(error),
        });
      });
      const over = Code.OVER_LIMIT;
      expectObservable(outcomes$).toBe(expected, { w: Code.OK, x: over, y: over, z: over });
      flush();
      expect(store.sent).toEqual([`a+1 a+${LARGEST_COUNT} a+2`]);
    });
  });

  it('answers a request that needs no store synchronously, without a window', () => {
    marbles(({ expectObservable, flush }, scheduler) => {
      const store = new ScriptedLane(() => throwError(() => new Error('must not be called')));
      const service = path(store, scheduler);
      expectObservable(service.windows$).toBe('-');
      const received: unknown[] = [];
      service.decide(request('shop', ['free=x']), {
        verdict: (verdict) => received.push(verdict.overallCode),
        error: (e) => received.push(e),
      });
      expect(received).toEqual([Code.OK]);
      flush();
      expect(store.sent).toEqual([]);
    });
  });

  it('fails the calls of a window that fails, and sends the next window', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests = cold('ab--------c----');
      const failure = cold<number[]>('-#', {}, new DecisionError('store_timeout', 'the counter store did not answer'));
      const success = cold('               -(r|)', { r: [1] });
      const expected = '      ----(xy)------z';
      const replies = [failure, success];
      const service = path(new ScriptedLane(() => replies.shift() ?? failure), scheduler);
      service.windows$.subscribe();
      expectObservable(outcomes(service, requests)).toBe(expected, {
        x: 'a:store_timeout',
        y: 'b:store_timeout',
        z: 'c:9',
      });
      expectSubscriptions(failure.subscriptions).toBe('---^!');
      expectSubscriptions(success.subscriptions).toBe('-------------^!');
      flush();
      expect(errorsCounted('redis_error', service)).toBe(2);
      expect(service.internalErrors).toEqual([]);
    });
  });

  it('reports an unexpected error of the store, which fails only the calls of its window', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests = cold('a---');
      const expected = '      ---x';
      const bug = new TypeError('secret detail');
      const service = path(new ScriptedLane(() => throwError(() => bug)), scheduler);
      service.windows$.subscribe();
      expectObservable(outcomes(service, requests)).toBe(expected, { x: 'a:store_failed' });
      flush();
      expect(service.internalErrors).toEqual([bug]);
    });
  });

  it('continues to gather while the store is busy, so that a slow store gets larger windows', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests = cold('a---bcb---------');
      const reply = cold('       ------(r|)');
      const expected = '      ---------x-----(yzw)';
      const store = new ScriptedLane((batch) => reply.pipe(map(() => batch.map(({ hits }) => hits))));
      const service = path(store, scheduler);
      service.windows$.subscribe();
      expectObservable(outcomes(service, requests)).toBe(expected, { x: 'a:9', y: 'b:9', z: 'c:9', w: 'b:8' });
      expectSubscriptions(reply.subscriptions).toBe(['---^-----!', '---------^-----!']);
      flush();
      expect(store.sent).toEqual(['a+1', 'b+2 c+1']);
    });
  });

  it('does not send a decision that was cancelled before its window closed, and counts it as a store error', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const store = new ScriptedLane((batch) => of(batch.map(({ hits }) => hits)));
      const service = path(store, scheduler);
      service.windows$.subscribe();
      const received: string[] = [];
      const observer = { verdict: () => received.push('verdict'), error: () => received.push('error') };
      const cancelled = service.decide(request('shop', ['k=a']), observer);
      const late = service.decide(request('shop', ['k=a']), observer);
      service.decide(request('shop', ['k=a']), observer);
      const cancel = cold('  -c');
      cancel.subscribe(() => {
        cancelled.cancel('cancelled');
        late.cancel('deadline_exceeded');
      });
      expectObservable(cancel).toBe('-c');
      flush();
      expect(store.sent).toEqual(['a+1']);
      expect(received).toEqual(['verdict']);
      expect(errorsCounted('redis_error', service)).toBe(2);
    });
  });

  it('sends nothing to the store when every call of a window was cancelled', () => {
    marbles(({ expectObservable, flush }, scheduler) => {
      const store = new ScriptedLane(() => of([]));
      const service = path(store, scheduler);
      expectObservable(service.windows$.pipe(map(({ batch }) => batch.length))).toBe('---n', { n: 0 });
      scheduler.schedule(() => {
        const silent = { verdict: () => undefined, error: () => undefined };
        service.decide(request('shop', ['k=a']), silent).cancel('cancelled');
      });
      flush();
      expect(store.sent).toEqual([]);
    });
  });

  it('answers decisions in flight after completion, rejects further requests, and completes', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests = cold('a-b--------c');
      const reply = cold('         --(r|)', { r: [1, 1] });
      const complete = cold(' ---(c|)');
      const expected = '      -----(xy)--z';
      const done = '          -----|';
      const store = new ScriptedLane(() => reply, { span: 9 });
      const service = path(store, scheduler);
      complete.subscribe(() => service.complete());
      expectObservable(service.windows$.pipe(ignoreElements())).toBe(done);
      expectObservable(outcomes(service, requests)).toBe(expected, { x: 'a:9', y: 'b:9', z: 'c:shutting_down' });
      expectSubscriptions(reply.subscriptions).toBe('---^-!');
      flush();
    });
  });

  it('reports an observer that throws, and delivers the other outcomes of its window', () => {
    marbles(({ expectObservable, flush }, scheduler) => {
      const service = path(new ScriptedLane((batch) => of(batch.map(({ hits }) => hits))), scheduler);
      expectObservable(service.windows$.pipe(map(({ batch }) => batch.length))).toBe('---n', { n: 1 });
      const broken = new Error('socket closed');
      const received: string[] = [];
      scheduler.schedule(() => {
        service.decide(request('shop', ['k=a']), {
          verdict: () => {
            throw broken;
          },
          error: () => received.push('error'),
        });
        service.decide(request('shop', ['k=a']), {
          verdict: () => received.push('verdict'),
          error: () => received.push('error'),
        });
      });
      flush();
      expect(received).toEqual(['verdict']);
      expect(service.internalErrors).toEqual([broken]);
    });
  });

  it('fails calls that have waited for a free connection, with the behavior `fail`', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests = cold('a----bc---------');
      const reply = cold('       ------------(r|)', { r: [1] });
      const expected = '      ----------(yz)-x';
      const store = new ScriptedLane(() => reply, { whenFull: { behavior: 'fail', after: 2 } });
      const service = path(store, scheduler);
      service.windows$.subscribe();
      expectObservable(outcomes(service, requests)).toBe(expected, {
        x: 'a:9',
        y: 'b:store_pool_empty',
        z: 'c:store_pool_empty',
      });
      expectSubscriptions(reply.subscriptions).toBe('---^-----------!');
      flush();
      expect(store.sent).toEqual(['a+1']);
      expect(errorsCounted('redis_error', service)).toBe(2);
    });
  });

  it('sends a window over the bound after its wait, with the behavior `exceed`', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests = cold('a----b----------');
      const reply = cold('       --------(r|)', { r: [1] });
      const expected = '      -----------x------y-';
      const store = new ScriptedLane(() => reply, { whenFull: { behavior: 'exceed', after: 2 } });
      const service = path(store, scheduler);
      service.windows$.subscribe();
      expectObservable(outcomes(service, requests)).toBe(expected, { x: 'a:9', y: 'b:9' });
      expectSubscriptions(reply.subscriptions).toBe(['---^-------!', '----------^-------!']);
      flush();
      expect(store.sent).toEqual(['a+1', 'b+1']);
    });
  });
});

import { type Observable, Subject, ignoreElements, map, of, throwError } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import type { Count, CounterOperation } from '../../src/limiter/counter-operation';
import { DecisionError } from '../../src/limiter/decision-error';
import { Limiter } from '../../src/limiter/limiter';
import { Code } from '../../src/limiter/verdict';
import { Statistics } from '../../src/statistics/statistics';
import type { Counters } from '../../src/streams/ports/counters';
import { type Decisions, type WhenFull, decisions } from '../../src/streams/decisions';
import { request } from '../../test/support/data/requests';
import { limit, rulesetOf } from '../../test/support/data/rules';
import { DEFAULT_OPTIONS } from '../../test/support/data/service';
import { marbles } from '../support/marbles';

const ruleset = rulesetOf('shop', { key: 'k', rateLimit: limit(10, 'MINUTE') }, { key: 'free' });

/** A store whose answers the scenario gives, and which remembers what it was sent. */
class ScriptedStore implements Counters {
  readonly #answer: (batch: readonly CounterOperation[]) => Observable<readonly Count[]>;
  readonly sent: string[] = [];
  readonly connected$ = new Subject<boolean>();

  constructor(answer: (batch: readonly CounterOperation[]) => Observable<readonly Count[]>) {
    this.#answer = answer;
  }

  apply(batch: readonly CounterOperation[]): Observable<readonly Count[]> {
    this.sent.push(batch.map(({ key, hits }) => `${key.split('_')[2]}+${hits}`).join(' '));
    return this.#answer(batch);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function path(counters: Counters, scheduler: TestScheduler, span = 3, windowsInFlight = 1, whenFull?: WhenFull) {
  const statistics = new Statistics(10);
  const defects: unknown[] = [];
  const made = decisions({
    limiter: new Limiter(DEFAULT_OPTIONS, statistics),
    ruleset: () => ruleset,
    counters,
    statistics,
    windowSpan: span,
    windowsInFlight,
    whenFull,
    scheduler,
    onDefect: (error) => defects.push(error),
  });
  return { ...made, statistics, defects };
}

/** What a caller hears: what is left of the limit, or why there is no verdict. */
function answers({ decide }: Decisions, questions$: Observable<string>): Observable<string> {
  const heard$ = new Subject<string>();
  questions$.subscribe((value) =>
    decide(request('shop', [`k=${value}`]), {
      verdict: ({ overallCode, statuses }) =>
        heard$.next(`${value}:${overallCode === Code.OK ? statuses[0]?.limitRemaining : 'over'}`),
      error: (error) => heard$.next(`${value}:${error.code}`),
    }),
  );
  return heard$;
}

function errorsCounted(kind: string, { statistics }: { statistics: Statistics }): number | undefined {
  return new Map(statistics.entries()).get(`ratelimit.service.call.should_rate_limit.${kind}`);
}

describe('the decision path', () => {
  it('gathers questions into a window, merges them by key, and answers each by its place', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const questions = cold('aab----');
      const reply = cold('       --(r|)', { r: [7, 1] });
      const expected = '      -----(xyz)';
      const store = new ScriptedStore(() => reply);
      const service = path(store, scheduler);
      service.windows$.subscribe();
      expectObservable(answers(service, questions)).toBe(expected, { x: 'a:4', y: 'a:3', z: 'b:9' });
      flush();
      expectSubscriptions(reply.subscriptions).toBe('---^-!');
      expect(store.sent).toEqual(['a+2 b+1']);
    });
  });

  it('answers what needs no store at once, in no window', () => {
    marbles(({ expectObservable, flush }, scheduler) => {
      const store = new ScriptedStore(() => throwError(() => new Error('must not be asked')));
      const service = path(store, scheduler);
      expectObservable(service.windows$).toBe('-');
      const heard: unknown[] = [];
      service.decide(request('shop', ['free=x']), {
        verdict: (verdict) => heard.push(verdict.overallCode),
        error: (e) => heard.push(e),
      });
      expect(heard).toEqual([Code.OK]);
      flush();
      expect(store.sent).toEqual([]);
    });
  });

  it('a window that fails fails its own calls, and the next one goes its way', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const questions = cold('ab--------c----');
      const failure = cold<number[]>('-#', {}, new DecisionError('store_timeout', 'the counter store did not answer'));
      const success = cold('               -(r|)', { r: [1] });
      const expected = '      ----(xy)------z';
      const replies = [failure, success];
      const service = path(new ScriptedStore(() => replies.shift() ?? failure), scheduler);
      service.windows$.subscribe();
      expectObservable(answers(service, questions)).toBe(expected, {
        x: 'a:store_timeout',
        y: 'b:store_timeout',
        z: 'c:9',
      });
      flush();
      expect(errorsCounted('redis_error', service)).toBe(2);
      expect(service.defects).toEqual([]);
    });
  });

  it('a store that throws what it should not costs the calls of its window alone, and is told', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const questions = cold('a---');
      const expected = '      ---x';
      const defect = new TypeError('secret detail');
      const service = path(new ScriptedStore(() => throwError(() => defect)), scheduler);
      service.windows$.subscribe();
      expectObservable(answers(service, questions)).toBe(expected, { x: 'a:store_failed' });
      flush();
      expect(service.defects).toEqual([defect]);
    });
  });

  it('keeps gathering while the store is busy, so that a slow store gets larger windows', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const questions = cold('a---bcb---------');
      const reply = cold('       ------(r|)');
      const expected = '      ---------x-----(yzw)';
      const store = new ScriptedStore((batch) => reply.pipe(map(() => batch.map(({ hits }) => hits))));
      const service = path(store, scheduler);
      service.windows$.subscribe();
      expectObservable(answers(service, questions)).toBe(expected, { x: 'a:9', y: 'b:9', z: 'c:9', w: 'b:8' });
      flush();
      expect(store.sent).toEqual(['a+1', 'b+2 c+1']);
    });
  });

  it('does not count a question that was taken back before its window closed', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const store = new ScriptedStore((batch) => of(batch.map(({ hits }) => hits)));
      const service = path(store, scheduler);
      service.windows$.subscribe();
      const heard: string[] = [];
      const asker = { verdict: () => heard.push('verdict'), error: () => heard.push('error') };
      const gone = service.decide(request('shop', ['k=a']), asker);
      const late = service.decide(request('shop', ['k=a']), asker);
      service.decide(request('shop', ['k=a']), asker);
      const cancel = cold('  -c');
      cancel.subscribe(() => {
        gone.cancel('cancelled');
        late.cancel('deadline_exceeded');
      });
      expectObservable(cancel).toBe('-c');
      flush();
      expect(store.sent).toEqual(['a+1']);
      expect(heard).toEqual(['verdict']);
      expect(errorsCounted('redis_error', service)).toBe(1);
    });
  });

  it('asks no store for a window whose calls have all gone', () => {
    marbles(({ expectObservable, flush }, scheduler) => {
      const store = new ScriptedStore(() => of([]));
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

  it('on completion answers what is under way, refuses what comes after, and completes', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const questions = cold('a-b--------c');
      const reply = cold('         --(r|)', { r: [1, 1] });
      const complete = cold(' ---(c|)');
      const expected = '      -----(xy)--z';
      const done = '          -----|';
      const store = new ScriptedStore(() => reply);
      const service = path(store, scheduler, 9);
      complete.subscribe(() => service.complete());
      expectObservable(service.windows$.pipe(ignoreElements())).toBe(done);
      expectObservable(answers(service, questions)).toBe(expected, { x: 'a:9', y: 'b:9', z: 'c:shutting_down' });
      flush();
    });
  });

  it('an asker that throws does not take the rest of its window with it', () => {
    marbles(({ expectObservable, flush }, scheduler) => {
      const service = path(new ScriptedStore((batch) => of(batch.map(({ hits }) => hits))), scheduler);
      expectObservable(service.windows$.pipe(map(({ batch }) => batch.length))).toBe('---n', { n: 1 });
      const broken = new Error('socket gone');
      const heard: string[] = [];
      scheduler.schedule(() => {
        service.decide(request('shop', ['k=a']), {
          verdict: () => {
            throw broken;
          },
          error: () => heard.push('error'),
        });
        service.decide(request('shop', ['k=a']), {
          verdict: () => heard.push('verdict'),
          error: () => heard.push('error'),
        });
      });
      flush();
      expect(heard).toEqual(['verdict']);
      expect(service.defects).toEqual([broken]);
    });
  });

  it('fails calls that have waited long for a place, when the settings ask for that', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const questions = cold('a----bc---------');
      const reply = cold('       ------------(r|)', { r: [1] });
      const expected = '      ----------(yz)-x';
      const store = new ScriptedStore(() => reply);
      const service = path(store, scheduler, 3, 1, { behavior: 'fail', after: 2 });
      service.windows$.subscribe();
      expectObservable(answers(service, questions)).toBe(expected, {
        x: 'a:9',
        y: 'b:store_pool_empty',
        z: 'c:store_pool_empty',
      });
      flush();
      expect(store.sent).toEqual(['a+1']);
      expect(errorsCounted('redis_error', service)).toBe(2);
    });
  });

  it('hands a window that has waited long for a place to the store all the same, when the settings ask for that', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const questions = cold('a----b----------');
      const reply = cold('       --------(r|)', { r: [1] });
      const expected = '      -----------x------y-';
      const store = new ScriptedStore(() => reply);
      const service = path(store, scheduler, 3, 1, { behavior: 'exceed', after: 2 });
      service.windows$.subscribe();
      expectObservable(answers(service, questions)).toBe(expected, { x: 'a:9', y: 'b:9' });
      flush();
      expect(store.sent).toEqual(['a+1', 'b+1']);
    });
  });
});

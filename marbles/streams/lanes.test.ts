import { Observable, ignoreElements, map, mergeMap, share } from 'rxjs';
import type { RunHelpers, TestScheduler } from 'rxjs/testing';
import { DecisionError } from '../../src/limiter/decision-error';
import { Limiter } from '../../src/limiter/limiter';
import { Code } from '../../src/limiter/verdict';
import { Statistics } from '../../src/statistics/statistics';
import { type Decisions, decisions } from '../../src/streams/decisions';
import { request } from '../../test/support/data/requests';
import { limit, rulesetOf } from '../../test/support/data/rules';
import { DEFAULT_OPTIONS } from '../../test/support/data/service';
import { marbles } from '../support/marbles';
import { type LaneOptions, ScriptedLane, freshCounts, storeOf } from '../support/scripted-lanes';

const ruleset = rulesetOf('shop', { key: 'k', rateLimit: limit(10, 'MINUTE') });

/** The decision path over lanes named by a letter: the first letter of a value says which lane counts it. */
function pathOver(
  lanes: Readonly<Record<string, ScriptedLane>>,
  scheduler: TestScheduler,
  stopIncrementWhenOverLimit = false,
): Decisions {
  const statistics = new Statistics(10);
  function laneNamed(name = ''): ScriptedLane {
    const lane = lanes[name];
    if (lane === undefined) throw new Error(`no lane ${name}`);
    return lane;
  }
  return decisions({
    limiter: new Limiter({ ...DEFAULT_OPTIONS, stopIncrementWhenOverLimit }, statistics),
    ruleset: () => ruleset,
    counters: storeOf(({ key }) => laneNamed(key.split('_')[2]?.[0])),
    statistics,
    scheduler,
    onInternalError: (error) => {
      throw error;
    },
  });
}

/** The outcome of each request, written as its values (`a1+b1`): what is left of each limit, `over`, or the code of its error. */
function outcomes({ decide, windows$ }: Decisions, requests$: Observable<string>): Observable<string> {
  windows$.subscribe();
  return requests$.pipe(
    mergeMap(
      (values) =>
        new Observable<string>((subscriber) => {
          const descriptors = values.split('+').map((value) => `k=${value}`);
          decide(request('shop', descriptors), {
            verdict: ({ statuses }) => {
              const left = statuses.map(({ code, limitRemaining }) => (code === Code.OK ? limitRemaining : 'over'));
              subscriber.next(`${values}: ${left.join(' ')}`);
            },
            error: ({ code }) => subscriber.next(`${values}: ${code}`),
          });
        }),
    ),
  );
}

/** A lane that replies when `reply` emits, with counts of which every key is new. */
function laneAfter(reply: Observable<unknown>, options: LaneOptions = {}): ScriptedLane {
  return new ScriptedLane((batch) => reply.pipe(map(() => freshCounts(batch))), { span: 1, ...options });
}

function timedOut({ cold }: RunHelpers, marble: string): Observable<never> {
  return cold(marble, {}, new DecisionError('store_timeout', 'the counter store did not answer'));
}

describe('a lane', () => {
  it('that does not reply holds up only the calls that it counts', () => {
    marbles((helpers, scheduler) => {
      const { cold, expectObservable, expectSubscriptions } = helpers;
      const requests$ = cold('v---w---x---y--------- ', { v: 'a1', w: 'b1', x: 'a2', y: 'b2' });
      const hanging = timedOut(helpers, '----------#');
      const quick = cold('     --(r|)');
      const expected = '       -------w---v---y-----x';
      const path = pathOver({ a: laneAfter(hanging), b: laneAfter(quick) }, scheduler);
      expectObservable(outcomes(path, requests$)).toBe(expected, {
        v: 'a1: store_timeout',
        w: 'b1: 9',
        x: 'a2: store_timeout',
        y: 'b2: 9',
      });
      expectSubscriptions(quick.subscriptions).toBe(['-----^-!', '-------------^-!']);
    });
  });

  it('has a window, a bound on windows in flight and a policy of its own', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests$ = cold('vw-x----y----------', { v: 'a1', w: 'b1', x: 'a2', y: 'b2' });
      const reply = cold('      -----(r|)');
      const expected = '        ------xv---w------y';
      const a = laneAfter(reply, { span: 2, whenFull: { behavior: 'fail', after: 1 } });
      const b = laneAfter(reply, { span: 5 });
      const values = { v: 'a1: 9', w: 'b1: 9', x: 'a2: store_pool_empty', y: 'b2: 9' };
      expectObservable(outcomes(pathOver({ a, b }, scheduler), requests$)).toBe(expected, values);
      flush();
      expect([a.sent, b.sent]).toEqual([['a1+1'], ['b1+1', 'b2+1']]);
    });
  });

  it('that has retired sends what it has gathered, also what was on its way to it, and is not kept open', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const requests$ = cold('v---w-x----', { v: 'a1', w: 'a2', x: 'a3' });
      const retired$ = hot('  --r--------');
      const reply = cold('      --(r|)');
      const expected = '      ----v-w-x--';
      const path = pathOver({ a: laneAfter(reply, { span: 9, retired$ }) }, scheduler);
      expectObservable(outcomes(path, requests$)).toBe(expected, { v: 'a1: 9', w: 'a2: 9', x: 'a3: 9' });
      expectSubscriptions(reply.subscriptions).toBe(['--^-!', '----^-!', '------^-!']);
      expectSubscriptions(retired$.subscriptions).toBe(['^-!', '----(^!)', '------(^!)']);
    });
  });
});

describe('a call of several lanes', () => {
  it('waits for all of them, which count at the same time when they are of different instances', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests$ = cold('v----------', { v: 'a1+b1+a2' });
      const slow = cold('      -----(r|)');
      const quick = cold('     --(r|)');
      const expected = '      ------v----';
      const [a, b] = [laneAfter(slow), laneAfter(quick)];
      expectObservable(outcomes(pathOver({ a, b }, scheduler), requests$)).toBe(expected, { v: 'a1+b1+a2: 9 9 9' });
      expectSubscriptions(slow.subscriptions).toBe(' -^----!');
      expectSubscriptions(quick.subscriptions).toBe('-^-!');
      flush();
      expect([a.sent, b.sent]).toEqual([['a1+1 a2+1'], ['b1+1']]);
    });
  });

  it.each<[lanesAtOnce: number, subscriptions: [string, string, string], outcome: string]>([
    [1, ['-^--!', '-----^--!', '---------^--!'], '------------v'],
    [2, ['-^--!', '-^--!', '-----^--!'], '        --------v'],
    [9, ['-^--!', '-^--!', '-^--!'], '            ----v'],
  ])('uses %i lanes of one instance at a time', (lanesAtOnce, subscriptions, outcome) => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const requests$ = cold('v------------', { v: 'a1+b1+c1' });
      const replies = { a: cold('---(r|)'), b: cold('---(r|)'), c: cold('---(r|)') };
      const instance = { lanesAtOnce };
      const lanes = Object.entries(replies).map(([name, reply]) => [name, laneAfter(reply, { instance })] as const);
      const path = pathOver(Object.fromEntries(lanes), scheduler);
      expectObservable(outcomes(path, requests$)).toBe(outcome.trim(), { v: 'a1+b1+c1: 9 9 9' });
      const [onA, onB, onC] = subscriptions;
      expectSubscriptions(replies.a.subscriptions).toBe(onA);
      expectSubscriptions(replies.b.subscriptions).toBe(onB);
      expectSubscriptions(replies.c.subscriptions).toBe(onC);
    });
  });

  it('fails once, with the first lane that fails, and is not sent to lanes after it', () => {
    marbles((helpers, scheduler) => {
      const { cold, expectObservable, flush } = helpers;
      const requests$ = cold('v--------', { v: 'a1+b1+c1+d1' });
      const expected = '      ----v----';
      const instance = { lanesAtOnce: 2 };
      const a = laneAfter(timedOut(helpers, '---#'), { instance });
      const b = laneAfter(timedOut(helpers, '----#'), { instance });
      const d = laneAfter(cold('(r|)'), { instance });
      const path = pathOver({ a, b, c: d, d }, scheduler);
      expectObservable(outcomes(path, requests$)).toBe(expected, { v: 'a1+b1+c1+d1: store_timeout' });
      flush();
      expect(d.sent).toEqual([]);
    });
  });

  it('is answered when completion begins between two of its lanes', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const requests$ = cold(' v---------', { v: 'a1+b1' });
      const reply = cold('      --(r|)');
      const complete$ = cold(' --c');
      const expected = '       -----v----';
      const instance = { lanesAtOnce: 1 };
      const path = pathOver({ a: laneAfter(reply, { instance }), b: laneAfter(reply, { instance }) }, scheduler);
      const windows$ = path.windows$.pipe(share());
      complete$.subscribe(() => path.complete());
      expectObservable(windows$.pipe(ignoreElements())).toBe('-----|');
      expectObservable(outcomes({ ...path, windows$ }, requests$)).toBe(expected, { v: 'a1+b1: 9 9' });
    });
  });

  it('is read, then counted, under STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests$ = cold(' v---------', { v: 'a1+b1' });
      const expected = '       ------v---';
      const full = new ScriptedLane((batch) => cold('-(r|)', { r: batch.map(({ hits }) => 10 + hits) }), { span: 1 });
      const room = new ScriptedLane((batch) => cold('--(r|)', { r: batch.map(({ hits }) => 3 + hits) }), { span: 1 });
      const path = pathOver({ a: full, b: room }, scheduler, true);
      expectObservable(outcomes(path, requests$)).toBe(expected, { v: 'a1+b1: over 7' });
      flush();
      expect([full.sent, room.sent]).toEqual([
        ['a1+0', 'a1+1'],
        ['b1+0', 'b1+0'],
      ]);
    });
  });
});

import { Observable, ignoreElements, map, mergeMap, of, share, throwError } from 'rxjs';
import type { RunHelpers, TestScheduler } from 'rxjs/testing';
import { LARGEST_COUNT } from '../../src/counting/operation';
import { DecisionError } from '../../src/counting/decision-error';
import { Limiter } from '../../src/limiter/limiter';
import { DEFAULT_OPTIONS, type LimiterOptions } from '../../src/limiter/options';
import { Code } from '../../src/limiter/verdict';
import { SERVICE_ERRORS, Statistics } from '../../src/statistics/statistics';
import { type Decisions, decisions } from '../../src/streams/decisions';
import type { Counters } from '../../src/streams/ports/counters';
import type { CallTrace, WindowTracer } from '../../src/streams/ports/tracer';
import { descriptor, request } from '../../test/support/data/requests';
import { limit, rulesetOf } from '../../test/support/data/rules';
import { marbles } from '../support/marbles';
import { type LaneOptions, type Reply, ScriptedLane, freshCounts, storeOf } from '../support/scripted-lanes';

const ruleset = rulesetOf('shop', { key: 'k', rateLimit: limit(10, 'MINUTE') }, { key: 'free' });
const SILENT = { verdict: () => undefined, error: () => undefined };
const TIMEOUT = new DecisionError('store_timeout', 'the counter store did not answer');
const BUG = new TypeError('secret detail');

interface PathOptions {
  readonly countNow?: Counters['countNow'];
  readonly tracer?: WindowTracer;
  readonly limiter?: Partial<LimiterOptions>;
}

/**
 * The decision path over one lane, or over lanes named by a letter, where the first letter of a value says which lane
 * counts it, or why none does. Its windows are subscribed to.
 */
function path(
  lanes: ScriptedLane | Readonly<Record<string, ScriptedLane | DecisionError>>,
  scheduler: TestScheduler,
  { countNow, tracer, limiter }: PathOptions = {},
) {
  function laneOf({ key }: { readonly key: string }): ScriptedLane {
    const lane = lanes instanceof ScriptedLane ? lanes : lanes[key.split('_')[2]?.[0] ?? ''];
    if (lane === undefined) throw new Error(`no lane for ${key}`);
    if (lane instanceof DecisionError) throw lane;
    return lane;
  }
  const statistics = new Statistics(10);
  const internalErrors: unknown[] = [];
  let lost = 0;
  const made = decisions({
    limiter: new Limiter({ ...DEFAULT_OPTIONS, ...limiter }, statistics),
    ruleset: () => ruleset,
    counters: { ...storeOf(laneOf), countNow },
    statistics,
    scheduler,
    tracer,
    onInternalError: (error) => internalErrors.push(error),
    onReportsLost: () => (lost += 1),
  });
  const windows$ = made.windows$.pipe(share());
  windows$.subscribe();
  return {
    ...{ ...made, windows$, statistics, internalErrors },
    get lost() {
      return lost;
    },
  };
}

/** A decision path with one lane, in virtual time, which replies as a diagram says: `r` a count of 1, `#` a timeout. */
function scenario(
  reply: string | ((helpers: RunHelpers) => Reply),
  play: (helpers: RunHelpers, service: ReturnType<typeof path>, lane: ScriptedLane) => void,
  options: PathOptions & { readonly lane?: LaneOptions } = {},
): void {
  marbles((helpers, scheduler) => {
    function scripted(): ReturnType<Reply> {
      return helpers.cold(reply as string, { r: [1] }, TIMEOUT);
    }
    const lane = new ScriptedLane(typeof reply === 'string' ? scripted : reply(helpers), options.lane);
    const service = path(lane, scheduler, options);
    play(helpers, service, lane);
  });
}

/**
 * The outcome of each request, written as its values (`a1+b1`): what is left of each limit, `over`, or the code of its
 * error.
 */
function outcomes({ decide }: Decisions, requests$: Observable<string>): Observable<string> {
  return requests$.pipe(
    mergeMap(
      (values) =>
        new Observable<string>((subscriber) => {
          const descriptors = values.split('+').map((value) => `k=${value}`);
          decide(request('shop', descriptors), {
            verdict: ({ statuses }) => {
              const left = statuses.map(({ code, limitRemaining }) => (code === Code.OK ? limitRemaining : 'over'));
              subscriber.next(`${values}:${left.join(' ')}`);
            },
            error: ({ code }) => subscriber.next(`${values}:${code}`),
          });
        }),
    ),
  );
}

/** A lane that replies when `reply` emits, with counts of which every key is new. */
function laneAfter(reply: Observable<unknown>, options: LaneOptions = {}): ScriptedLane {
  return new ScriptedLane((batch) => reply.pipe(map(() => freshCounts(batch))), { span: 1, ...options });
}

function storeErrors({ statistics }: { statistics: Statistics }): number {
  return statistics.counter('ratelimit.service.call.should_rate_limit.redis_error').value;
}
function lostReports({ statistics }: { statistics: Statistics }): number {
  return statistics.counter('ratelimit.store.lost_reports').value;
}
function fresh(): Reply {
  return (batch) => of(freshCounts(batch));
}
/** An observer that records which kind of outcome it received. */
function recorder() {
  const received: string[] = [];
  return { received, verdict: () => received.push('verdict'), error: () => received.push('error') };
}

describe('the decision path', () => {
  const SATURATED = [LARGEST_COUNT, LARGEST_COUNT];
  it.each<[string, number[], Record<string, string>]>([
    ['gives each its own count', [7, 1], { x: 'a:4', y: 'a:3', z: 'b:9' }],
    ['is over for all on a saturated counter', SATURATED, { x: 'a:over', y: 'a:over', z: 'b:over' }],
  ])('gathers requests into a window, merges them by key, and %s', (_, counts, values) => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests = cold('aab----');
      const reply = cold('       --(r|)', { r: counts });
      const expected = '      -----(xyz)';
      const lane = new ScriptedLane(() => reply);
      const service = path(lane, scheduler);
      expectObservable(outcomes(service, requests)).toBe(expected, values);
      flush();
      expectSubscriptions(reply.subscriptions).toBe('---^-!');
      expect([lane.sent, storeErrors(service)]).toEqual([['a+2 b+1'], 0]);
      expect(service.statistics.readGauge('ratelimit.pipeline.window_size')).toBe(2);
      expect(service.statistics.counter('ratelimit.pipeline.merged_hits').value).toBe(1);
    });
  });

  it('answers a request that needs no store synchronously, without a window', () => {
    scenario(
      () => () => throwError(() => new Error('must not be called')),
      ({ flush }, service, lane) => {
        const observer = recorder();
        service.decide(request('shop', ['free=x']), observer);
        expect(observer.received).toEqual(['verdict']);
        flush();
        const size = service.statistics.readGauge('ratelimit.pipeline.window_size');
        expect([lane.sent, size]).toEqual([[], 0]);
      },
    );
  });

  it.each<[what: string, thrown: Error, code: string, internal: unknown[]]>([
    ['', TIMEOUT, 'store_timeout', []],
    [' and reports an unexpected error', BUG, 'store_failed', [BUG]],
  ])('fails the calls of a window that fails%s, and sends the next window', (_, thrown, code, internal) => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests = cold('ab--------c----');
      const failure = cold<number[]>('-#', {}, thrown);
      const success = cold('               -(r|)', { r: [1] });
      const expected = '      ----(xy)------z';
      const replies = [failure, success];
      const service = path(new ScriptedLane(() => replies.shift() ?? failure), scheduler);
      const values = { x: `a:${code}`, y: `b:${code}`, z: 'c:9' };
      expectObservable(outcomes(service, requests)).toBe(expected, values);
      expectSubscriptions(failure.subscriptions).toBe('---^!');
      expectSubscriptions(success.subscriptions).toBe('-------------^!');
      flush();
      expect([storeErrors(service), service.internalErrors]).toEqual([2, internal]);
    });
  });

  it('does not send a decision that was cancelled before its window closed, nor a window of such alone', () => {
    scenario(fresh, ({ cold, flush }, service, lane) => {
      const observer = recorder();
      for (const reason of ['cancelled', 'deadline_exceeded', undefined] as const) {
        const pending = service.decide(request('shop', ['k=a']), observer);
        if (reason !== undefined) cold('-c').subscribe(() => pending.cancel(reason));
      }
      cold('-----c').subscribe(() => service.decide(request('shop', ['k=b']), observer).cancel('cancelled'));
      flush();
      expect([lane.sent, observer.received, storeErrors(service)]).toEqual([['a+1'], ['verdict'], 3]);
    });
  });

  it.each(['-----(r|)', '-----#'])(
    'delivers nothing to a decision that was cancelled before the store replied %s',
    (reply) => {
      scenario(reply, ({ cold, flush }, service, lane) => {
        const observer = recorder();
        const pending = service.decide(request('shop', ['k=a']), observer);
        cold('-----c').subscribe(() => pending.cancel('cancelled'));
        flush();
        expect([lane.sent, observer.received, storeErrors(service)]).toEqual([['a+1'], [], 1]);
      });
    },
  );

  it.each([
    ['when it is decided', '-----(r|)', '', [0, 0], [1, 1]],
    ['when the store has failed', '-----#', '', [0, 0], [1, 0]],
    ['when it is cancelled, once', '-----(r|)', '-----c', [1, 0], [1, 1]],
    ['when it is cancelled, also if the store fails', '-----#', '-----c', [1, 0], [1, 0]],
  ])('counts the hits of a call %s', (_, reply, cancels, before, after) => {
    scenario(reply, ({ cold, flush }, { decide, statistics }) => {
      const seen: unknown[] = [];
      const pending = decide(request('shop', ['k=a']), SILENT);
      cold(cancels).subscribe(() => pending.cancel('cancelled'));
      cold('------r-------r').subscribe(() => {
        const { totalHits, withinLimit } = statistics.rule('shop.k');
        seen.push([totalHits, withinLimit]);
      });
      flush();
      expect(seen).toEqual([before, after]);
    });
  });

  it('sends a report whose caller has gone, also to further lanes, and delivers nothing', () => {
    for (const cause of ['cancelled', 'deadline_exceeded'] as const) {
      marbles(({ cold, flush }, scheduler) => {
        const instance = { lanesAtOnce: 1 };
        const [a, b] = [laneAfter(cold('---(r|)'), { instance }), laneAfter(cold('---(r|)'), { instance })];
        const service = path({ a, b }, scheduler);
        const observer = recorder();
        const report = { ...request('shop', ['k=a1', 'k=b1'], 7), purpose: 'report' } as const;
        service.decide(report, observer).cancel(cause);
        service.decide({ ...report, purpose: 'ask' }, observer).cancel(cause);
        flush();
        expect([a.sent, b.sent, observer.received, storeErrors(service)]).toEqual([['a1+7'], ['b1+7'], [], 2]);
        expect(lostReports(service)).toBe(0);
        expect(service.statistics.rule('shop.k')).toMatchObject({ totalHits: 14, withinLimit: 14, asks: 2 });
      });
    }
  });

  it('counts the reports that the store has not counted, also of callers that have gone', () => {
    scenario('-----#', ({ flush }, service) => {
      const report = { ...request('shop', ['k=a', 'k=b'], 7), purpose: 'report' } as const;
      service.decide(report, SILENT);
      service.decide(report, SILENT).cancel('deadline_exceeded');
      service.decide(request('shop', ['k=a']), SILENT);
      flush();
      expect([lostReports(service), service.lost]).toEqual([4, 2]);
    });
  });

  it('reports an observer that throws, and delivers the other outcomes of its window', () => {
    scenario(fresh, ({ flush }, service) => {
      const broken = new Error('socket closed');
      function verdict(): never {
        throw broken;
      }
      const observer = recorder();
      for (const each of [{ ...SILENT, verdict }, observer]) service.decide(request('shop', ['k=a']), each);
      flush();
      expect([service.internalErrors, observer.received]).toEqual([[broken], ['verdict']]);
    });
  });

  it('removes a key from the local cache when negative hits on it fail or are cancelled, which may have been subtracted', () => {
    for (const end of ['fails', 'is cancelled']) {
      scenario(
        ({ cold }) =>
          (batch) =>
            batch.some(({ hits }) => hits < 0) ? cold(end === 'fails' ? '-----#' : '-', {}, TIMEOUT) : of([101]),
        ({ cold, flush }, service, lane) => {
          function decide(hitsAddend: number, isNegativeHits = false) {
            return service.decide(request('shop', [descriptor('k=a', { hitsAddend, isNegativeHits })]), SILENT);
          }
          const negative = decide(100, true);
          cold('--a-a-').subscribe(() => decide(1));
          if (end === 'is cancelled') cold('------c').subscribe(() => negative.cancel('cancelled'));
          cold('---------a').subscribe(() => decide(1));
          flush();
          expect([end, lane.sent]).toEqual([end, ['a-100', 'a+1', 'a+1']]);
        },
        { lane: { span: 0, windowsInFlight: 9 }, limiter: { localCacheBytes: 10_000 } },
      );
    }
  });
});

it('the decision path sends a window over the bound after its wait, with the behavior `exceed`', () => {
  marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
    const requests = cold('a----b----------');
    const reply = cold('       --------(r|)', { r: [1] });
    const expected = '      -----------x------y-';
    const lane = new ScriptedLane(() => reply, { whenFull: { behavior: 'exceed', after: 2 } });
    const service = path(lane, scheduler);
    expectObservable(outcomes(service, requests)).toBe(expected, { x: 'a:9', y: 'b:9' });
    expectSubscriptions(reply.subscriptions).toBe(['---^-------!', '----------^-------!']);
    flush();
    expect([lane.sent, storeErrors(service)]).toEqual([['a+1', 'b+1'], 0]);
  });
});

describe('a store that counts at once', () => {
  function atOnce(countNow: Counters['countNow'], tracer?: WindowTracer) {
    const seen: string[] = [];
    let result = {} as ReturnType<typeof path>;
    scenario(
      fresh,
      ({ flush }, service) => {
        result = service;
        service.decide(request('shop', ['k=a']), {
          verdict: ({ statuses }) => seen.push(`${statuses[0]?.limitRemaining} left`),
          error: ({ code }) => seen.push(code),
        });
        seen.push('decided');
        flush();
      },
      { ...(countNow && { countNow }), ...(tracer && { tracer }) },
    );
    return { seen, ...result };
  }
  function setCount(operations: Parameters<NonNullable<Counters['countNow']>>[0]): void {
    for (const operation of operations) operation.countAfter = 4;
  }

  it('answers each request before decide returns; traced windows are gathered', () => {
    expect(atOnce(setCount).seen).toEqual(['6 left', 'decided']);
    expect(atOnce(setCount, { beginWindow: () => ({ ended: () => undefined }) }).seen).toEqual(['decided', '9 left']);
  });

  it.each([
    ['its error', TIMEOUT, 'store_timeout', []],
    ['an internal error', BUG, 'store_failed', [BUG]],
  ])('fails the request for which it throws with %s, and counts a store error', (_, thrown, code, internal) => {
    const failed = atOnce(() => {
      throw thrown;
    });
    expect([failed.seen, storeErrors(failed), failed.internalErrors]).toEqual([[code, 'decided'], 1, internal]);
  });
});

describe('the trip of a window to the store', () => {
  const TRACE: CallTrace = { traceId: 'one', ended: () => undefined };
  const OTHER: CallTrace = { ...TRACE, traceId: 'other' };

  /** What the tracer records of calls on keys; traced ones have a trace, cancelled ones are cancelled. */
  function recorded(
    reply: () => Observable<readonly (number | DecisionError)[]>,
    calls: readonly (readonly [string, trace?: CallTrace, end?: 'cancelled'])[],
  ) {
    const log: unknown[] = [];
    const tracer: WindowTracer = {
      beginWindow: (load, traces) => {
        log.push(['begun', load, traces]);
        return { ended: (failure) => log.push(['ended', failure]) };
      },
    };
    scenario(
      () => reply,
      ({ flush }, { decide }) => {
        for (const [value, trace, end] of calls) {
          const pending = decide(request('shop', [`k=${value}`]), { ...SILENT, trace });
          if (end !== undefined) pending.cancel(end);
        }
        flush();
      },
      { tracer },
    );
    return log;
  }

  it('is recorded from its beginning to its end, with the traced calls that are not cancelled', () => {
    const log = recorded(() => of([3, 1]), [['a', TRACE], ['b'], ['a', OTHER], ['c', OTHER, 'cancelled']]);
    const begun = ['begun', { operations: 2, calls: 3 }, [TRACE, OTHER]];
    expect(log).toEqual([begun, ['ended', undefined]]);
    expect(recorded(() => of([1]), [['a'], ['b', TRACE, 'cancelled']])).toEqual([]);
  });

  it.each<[what: string, reply: () => Observable<(number | DecisionError)[]>, code: string]>([
    ['the store', () => throwError(() => TIMEOUT), 'store_timeout'],
    ['an internal error', () => throwError(() => BUG), 'store_failed'],
    ['one operation', () => of([1, TIMEOUT]), 'store_timeout'],
  ])('ends with the failure of %s', (_, reply, code) => {
    expect(recorded(reply, [['a', TRACE], ['b']])[1]).toEqual(['ended', code]);
  });
});

describe('a lane', () => {
  it('that does not reply holds up only the calls that it counts', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const requests$ = cold('v---w---x---y--------- ', { v: 'a1', w: 'b1', x: 'a2', y: 'b2' });
      const hanging = cold('----------#', {}, TIMEOUT);
      const quick = cold('     --(r|)');
      const expected = '       -------w---v---y-----x';
      const service = path({ a: laneAfter(hanging), b: laneAfter(quick) }, scheduler);
      const values = { v: 'a1:store_timeout', w: 'b1:9', x: 'a2:store_timeout', y: 'b2:9' };
      expectObservable(outcomes(service, requests$)).toBe(expected, values);
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
      const values = { v: 'a1:9', w: 'b1:9', x: 'a2:store_pool_empty', y: 'b2:9' };
      expectObservable(outcomes(path({ a, b }, scheduler), requests$)).toBe(expected, values);
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
      const service = path({ a: laneAfter(reply, { span: 9, retired$ }) }, scheduler);
      expectObservable(outcomes(service, requests$)).toBe(expected, { v: 'a1:9', w: 'a2:9', x: 'a3:9' });
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
      expectObservable(outcomes(path({ a, b }, scheduler), requests$)).toBe(expected, { v: 'a1+b1+a2:9 9 9' });
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
      const replies = ['a', 'b', 'c'].map((name) => ({ name, reply: cold('---(r|)') }));
      const instance = { lanesAtOnce };
      const lanes = replies.map(({ name, reply }) => [name, laneAfter(reply, { instance })] as const);
      const service = path(Object.fromEntries(lanes), scheduler);
      expectObservable(outcomes(service, requests$)).toBe(outcome.trim(), { v: 'a1+b1+c1:9 9 9' });
      for (const [index, { reply }] of replies.entries()) {
        expectSubscriptions(reply.subscriptions).toBe(subscriptions[index] ?? []);
      }
    });
  });

  it('fails once, with the first lane that fails, and is not sent to lanes after it', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests$ = cold('v--------', { v: 'a1+b1+c1+d1' });
      const expected = '      ----v----';
      const replies = [cold('---#', {}, TIMEOUT), cold('----#', {}, TIMEOUT), cold('-----(r|)'), cold('(r|)')];
      const instance = { lanesAtOnce: 3 };
      const lanes = replies.map((reply) => laneAfter(reply, { instance }));
      const byName = Object.fromEntries(lanes.map((lane, index) => ['abcd'.charAt(index), lane]));
      const values = { v: 'a1+b1+c1+d1:store_timeout' };
      expectObservable(outcomes(path(byName, scheduler), requests$)).toBe(expected, values);
      flush();
      expect(lanes.map(({ sent }) => sent.length)).toEqual([1, 1, 1, 0]);
    });
  });

  it('or of one fails before any of it is sent if the store does not allow a key of it; other calls are counted', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests$ = cold('vwxy----', { v: 'a1+b1+z1', w: 'z1', x: 'a1+z1', y: 'a1+b1' });
      const reply = cold('      --(r|)');
      const expected = '       vwx---y-';
      const z = new DecisionError('invalid_request', 'a key is too long');
      const [a, b] = [laneAfter(reply), laneAfter(reply)];
      const service = path({ a, b, z }, scheduler);
      const values = { v: 'a1+b1+z1:invalid_request', w: 'z1:invalid_request', x: 'a1+z1:invalid_request' };
      expectObservable(outcomes(service, requests$)).toBe(expected, { ...values, y: 'a1+b1:9 9' });
      flush();
      expect([...a.sent, ...b.sent]).toEqual(['a1+1', 'b1+1']);
      expect([storeErrors(service), service.statistics.counter(SERVICE_ERRORS).value]).toEqual([0, 3]);
    });
  });

  it('is not sent to further lanes once it is cancelled', () => {
    marbles(({ cold, flush }, scheduler) => {
      const instance = { lanesAtOnce: 1 };
      const [a, b] = [laneAfter(cold('---(r|)'), { instance }), laneAfter(cold('---(r|)'), { instance })];
      const pending = path({ a, b }, scheduler).decide(request('shop', ['k=a1', 'k=b1']), SILENT);
      cold('--c').subscribe(() => pending.cancel('cancelled'));
      flush();
      expect([a.sent, b.sent]).toEqual([['a1+1'], []]);
    });
  });

  it('is answered when completion begins between two of its lanes, also where other calls were counted before', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const requests$ = cold(' (vw)------', { v: 'a1+b1', w: 'b2' });
      const reply = cold('      --(r|)');
      const complete$ = cold(' --c');
      const expected = '       ---w-v----';
      const instance = { lanesAtOnce: 1 };
      const service = path({ a: laneAfter(reply, { instance }), b: laneAfter(reply, { instance }) }, scheduler);
      complete$.subscribe(() => service.complete());
      expectObservable(service.windows$.pipe(ignoreElements())).toBe('-----|');
      expectObservable(outcomes(service, requests$)).toBe(expected, { v: 'a1+b1:9 9', w: 'b2:9' });
    });
  });

  it('is read, then counted, under STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests$ = cold(' v---------', { v: 'a1+b1' });
      const expected = '       ------v---';
      const full = new ScriptedLane((batch) => cold('-(r|)', { r: batch.map(({ hits }) => 10 + hits) }), { span: 1 });
      const room = new ScriptedLane((batch) => cold('--(r|)', { r: batch.map(({ hits }) => 3 + hits) }), { span: 1 });
      const service = path({ a: full, b: room }, scheduler, { limiter: { stopIncrementWhenOverLimit: true } });
      expectObservable(outcomes(service, requests$)).toBe(expected, { v: 'a1+b1:over 7' });
      flush();
      expect([...full.sent, ...room.sent]).toEqual(['a1+0', 'a1+1', 'b1+0', 'b1+0']);
    });
  });
});

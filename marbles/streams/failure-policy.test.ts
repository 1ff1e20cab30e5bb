import { asyncScheduler, map, mergeMap, of, throwError, timer } from 'rxjs';
import { DecisionError } from '../../src/counting/decision-error';
import { HeavyHitters } from '../../src/limiter/heavy-hitters';
import type { FailurePolicy } from '../../src/rules/rule-config';
import { Trip } from '../../src/streams/deadline';
import { Lanes } from '../../src/streams/lanes';
import { operation } from '../../test/support/data/operations';
import { descriptor } from '../../test/support/data/requests';
import { type Path, play, times } from '../support/decision-path';
import { marbles } from '../support/marbles';
import { type LaneOptions, ScriptedLane, freshCounts, inVirtualTime } from '../support/scripted-lanes';

const AWAY = new DecisionError('store_failed', 'the connection was lost');
const HEADERS = { limit: 'limit', remaining: 'remaining', reset: 'reset' };

const TRY_AGAIN = new DecisionError('store_failed', 'the slot moves', { isKeyError: true, isTryAgain: true });

/** The lane of a value, by its name. */
function named(lanes: Readonly<Record<string, ScriptedLane>>) {
  return (value: string) => lanes[value] ?? failing();
}

function failing(): ScriptedLane {
  return new ScriptedLane(() => throwError(() => AWAY), { span: 1 });
}
/** Counts after so many milliseconds. */
function answering(milliseconds: number, options: LaneOptions = {}): ScriptedLane {
  const reply$ = timer(milliseconds);
  return new ScriptedLane((batch) => reply$.pipe(map(() => freshCounts(batch))), { span: 1, ...options });
}

describe('a call that the store does not count', () => {
  it.each<[FailurePolicy, string[]]>([
    ['error', ['1: store_failed', '1: store_failed', '1: store_failed']],
    ['allow', ['1: OK 10', '1: OVER_LIMIT 0', '1: OK 10']],
    ['deny', ['1: OVER_LIMIT 0', '1: OVER_LIMIT 0', '1: OK 0']],
  ])(
    'is answered by the policy %s: over a limit of 0 in any case, and OK in shadow mode',
    (onStoreFailure, expected) => {
      const { outcomes } = play(failing, { onStoreFailure }, ({ call }) => ({
        0: () => ['k', 'none', 'shadow'].forEach((key) => call([`${key}=x`])),
      }));
      expect(outcomes).toEqual(expected);
    },
  );

  it.each<[FailurePolicy, string[]]>([
    ['error', ['1: store_failed', '1: store_failed', '1: store_failed', '1: store_failed']],
    ['allow', ['1: OK 3', '1: OK 3', '1: OK 3', '1: OK 3']],
    ['deny', ['1: OVER_LIMIT 0', '1: OVER_LIMIT 0', '1: OVER_LIMIT 0', '1: OVER_LIMIT 0']],
    ['local', ['1: OK 2', '1: OK 1', '1: OK 0', '1: OVER_LIMIT 0']],
  ])('is answered by the policy %s for all limits of its rule', (onStoreFailure, expected) => {
    const { outcomes, moved } = play(failing, { onStoreFailure }, ({ call }) => ({
      0: times(4, () => call(['pair=x'])),
    }));
    expect(outcomes).toEqual(expected);
    if (onStoreFailure === 'local')
      expect(moved()).toMatchObject({ 'shop.pair.minute.within_limit': 4, 'shop.pair.hour.over_limit': 1 });
  });

  it('says so in a header, moves all hits and the answers by policy, and is neither in the local cache nor an offence', () => {
    const offenders = new HeavyHitters({ capacity: 9, windowSeconds: 60 });
    const options = { onStoreFailure: 'deny', responseHeaders: HEADERS, localCacheBytes: 1000, offenders } as const;
    const lane = failing();
    const { headers, moved } = play(lane, options, ({ call }) => ({ 0: () => call(['k=x']), 3: () => call(['k=x']) }));
    const denied = ['limit: 10', 'remaining: 0', 'reset: 60', 'x-ratelimit-degraded: deny'];
    expect(headers).toEqual([...denied, ...denied]);
    expect(moved()).toMatchObject({ 'shop.k.total_hits': 2, 'store.answers_by_policy.__policy=deny': 2 });
    expect(Object.keys(moved()).join()).not.toMatch(/over_limit|within|redis_error/);
    expect(lane.sent).toEqual(['x+1', 'x+1']);
    expect(offenders.top({ limit: 9 }, 0)).toEqual([]);
  });

  it('is OVER_LIMIT as a whole when another descriptor was counted as over, and has the count of each that was counted', () => {
    const lanes = named({ a: failing(), b: answering(3) });
    const { outcomes, moved } = play(lanes, { onStoreFailure: 'allow' }, ({ call }) => ({
      0: () => call(['k=a', 'k=b']),
    }));
    expect(outcomes).toEqual(['4: OK 10 9']);
    expect(moved()).toMatchObject({ 'shop.k.total_hits': 2, 'shop.k.within_limit': 1 });
  });

  it('is judged without the parts of a guarded step that could not be read', () => {
    const lanes = { a: failing(), b: answering(1) };
    const options = { onStoreFailure: 'allow', stopIncrementWhenOverLimit: true } as const;
    const { outcomes } = play(named(lanes), options, ({ call }) => ({
      0: () =>
        [
          ['k=a', 'k=b'],
          ['k=a', 'none=a'],
        ].forEach((each) => call(each)),
    }));
    expect(outcomes).toEqual(['1: OVER_LIMIT 10 0', '4: OK 10 9']);
    expect([lanes.a.sent, lanes.b.sent]).toEqual([['a+0 a+1 a+1'], ['b+0', 'b+1']]);
  });

  it('is taken out of the local cache when hits are given back that the store may have subtracted late', () => {
    const late$ = timer(10).pipe(mergeMap(() => throwError(() => AWAY)));
    const lane = new ScriptedLane(([{ hits } = { hits: 0 }]) => (hits < 0 ? late$ : of([11])), {
      ...{ span: 1, windowsInFlight: 9 },
    });
    const back = descriptor('k=x', { hitsAddend: 5, isNegativeHits: true });
    play(lane, { onStoreFailure: 'allow', localCacheBytes: 10_000 }, ({ call }) => ({
      0: () => call([back]),
      ...Object.fromEntries([3, 6, 20].map((at) => [at, () => call(['k=x'])])),
    }));
    // The second of these is answered by the cache.
    expect(lane.sent).toEqual(['x-5', 'x+1', 'x+1']);
  });

  it('fails when the request is the reason, whatever the policy', () => {
    const invalid = new DecisionError('invalid_request', 'a key that the store does not allow');
    const lane = new ScriptedLane(() => throwError(() => invalid));
    const { outcomes } = play(lane, { onStoreFailure: 'allow' }, ({ call }) => ({ 0: () => call(['k=x']) }));
    expect(outcomes).toEqual(['3: invalid_request']);
  });
});

describe('a call that waits for the store', () => {
  it('is answered by policy after the decision timeout, whose window then leaves its place', () => {
    const lane = answering(50);
    const { outcomes } = play(lane, { onStoreFailure: 'allow', timeout: 20 }, ({ call }) => ({
      0: () => call(['k=x']),
      5: () => call(['k=y']),
    }));
    expect(outcomes).toEqual(['21: OK 10', '25: OK 10']);
    expect(lane.sent).toEqual(['x+1', 'y+1']);
  });

  it.each<[string, Readonly<Record<string, FailurePolicy>>, string[]]>([
    ['has a policy, of its rule or of the service', { k: 'allow', s: 'deny' }, ['101: OVER_LIMIT 10 0']],
    ['has the policy error', { k: 'error', s: 'allow' }, []],
  ])(
    'is answered after the default of the decision timeout only when each of its limits %s',
    (_, policies, expected) => {
      const options = { onStoreFailure: 'error', byPolicy: 100, policies } as const;
      const { outcomes } = play(answering(500), options, ({ call }) => ({ 0: () => call(['k=x', 's=x']) }));
      expect(outcomes.filter((outcome) => !outcome.startsWith('50'))).toEqual(expected);
      expect(outcomes).toHaveLength(1);
    },
  );

  it('is answered in time next to calls without a policy, in one window and while all windows are in flight', () => {
    const lane = answering(500);
    const options = { onStoreFailure: 'error', byPolicy: 100, policies: { k: 'allow' } } as const;
    const { outcomes } = play(lane, options, ({ call }) => ({
      0: () => ['k=x', 's=x'].forEach((each) => call([each])),
      5: () => ['k=y', 's=y'].forEach((each) => call([each])),
    }));
    expect(outcomes).toEqual(['101: OK 10', '105: OK 10', '501: OK 9', '1001: OK 9']);
    expect(lane.sent).toEqual(['x+1 x+1', 'y+1']);
  });

  it('that a policy answers after the default of that time is no failure of the server, but shows that it is slow', () => {
    const lane = answering(300, { windowsInFlight: 9 });
    const options = { onStoreFailure: 'error', byPolicy: 100, failures: 1, policies: { k: 'allow' } } as const;
    const seen: unknown[] = [];
    const { outcomes } = play(lane, options, ({ call }) => ({
      0: () => call(['k=x']),
      150: () => call(['s=x']),
      2_000: () => seen.push(lane.server!.rates(10), lane.server!.report.condition),
    }));
    expect(outcomes).toEqual(['101: OK 10', '451: OK 9']);
    expect(seen).toEqual([{ requests: 0.2, failures: 0, latency: 300 }, 'slow']);
  });

  it('that fails by the decision timeout is one failed request of the server, also when it is answered later', () => {
    const lane = answering(300, { windowsInFlight: 9 });
    let rates: unknown;
    play(lane, { onStoreFailure: 'allow', timeout: 100, failures: 5 }, ({ call }) => ({
      0: () => call(['k=x']),
      2_000: () => (rates = lane.server!.rates(10)),
    }));
    expect(rates).toEqual({ requests: 0.1, failures: 0.1, latency: null });
  });

  it('that has an error in place of its count, after a policy has answered it, is no answer of the server', () => {
    const late = new DecisionError('store_timeout', '');
    const lane = new ScriptedLane(() => timer(150).pipe(map(() => [late])), { span: 1, windowsInFlight: 99 });
    let condition: string | undefined;
    play(lane, { onStoreFailure: 'allow', byPolicy: 100, failures: 5 }, ({ call }) => ({
      0: () => call(['k=x']),
      10: () => lane.server!.trips.begin(new Trip()),
      ...Object.fromEntries(Array.from({ length: 74 }, (_, index) => [20 * (index + 1), () => call(['k=x'])])),
      1_400: () => {
        ({ condition } = lane.server!.report);
        lane.server!.end();
      },
    }));
    expect(condition).toBe('silent');
  });

  it('fails after the decision timeout when the policy is error', () => {
    const options = { onStoreFailure: 'error', timeout: 20 } as const;
    const { outcomes } = play(answering(50), options, ({ call }) => ({ 0: () => call(['k=x'], 10) }));
    expect(outcomes).toEqual(['21: store_timeout']);
  });

  it('is answered by policy before its caller gives up, in the order of these times; a late count changes nothing', () => {
    const waits = { x: 20, y: 8, z: 20, v: 0, w: 40 };
    const { outcomes, moved } = play(answering(30), { onStoreFailure: 'allow', timeout: 100 }, ({ call }) => ({
      0: () => Object.entries(waits).forEach(([value, wait]) => call([`k=${value}`], wait)),
    }));
    expect(outcomes).toEqual(['1: OK 10', '8: OK 10', '20: OK 10', '20: OK 10', '31: OK 9']);
    expect(moved()).toMatchObject({ 'shop.k.total_hits': 5, 'shop.k.within_limit': 1 });
  });

  it('has the counts that have arrived when its time is over', () => {
    const options = { onStoreFailure: 'allow', timeout: 100 } as const;
    const lanes = named({ a: answering(5), b: answering(50) });
    const { outcomes, moved } = play(lanes, options, ({ call }) => ({ 0: () => call(['k=a', 'none=b'], 20) }));
    expect(moved()['shop.k.within_limit']).toBe(1);
    expect(outcomes).toEqual(['20: OVER_LIMIT 9 0']);
  });

  it('is not sent when its caller has been answered while it was gathered', () => {
    const lane = answering(30);
    const { outcomes } = play(lane, { onStoreFailure: 'deny', timeout: 100 }, ({ call }) => ({
      0: () => call(['k=x']),
      5: () => call(['k=y'], 5),
      6: () => call(['k=z']),
    }));
    expect(outcomes).toEqual(['10: OVER_LIMIT 0', '31: OK 9', '61: OK 9']);
    expect(lane.sent).toEqual(['x+1', 'z+1']);
  });

  it('is sent when the window before it is written, whose calls have been answered before that', () => {
    class WritingLane extends ScriptedLane {
      override apply(...[batch, deadline]: Parameters<ScriptedLane['apply']>): ReturnType<ScriptedLane['apply']> {
        deadline.writing = inVirtualTime(timer(20));
        return super.apply(batch, deadline);
      }
    }
    const lane = new WritingLane((batch) => of(freshCounts(batch)), { span: 1 });
    const { outcomes } = play(lane, { onStoreFailure: 'error' }, ({ call }) => ({
      0: () => call(['k=x']),
      5: () => call(['k=y']),
    }));
    expect(outcomes).toEqual(['1: OK 9', '21: OK 9']);
  });

  it('has no second outcome when it is cancelled or counted before its time is over', () => {
    const options = { onStoreFailure: 'deny', timeout: 100 } as const;
    let cancelled: ReturnType<Path['call']>;
    const { outcomes, moved } = play(answering(20), options, ({ call }) => ({
      0: () => [call(['k=x'], 30), (cancelled = call(['k=y'], 10))],
      2: () => cancelled.cancel('cancelled'),
    }));
    expect(outcomes).toEqual(['21: OK 9']);
    expect(moved()['shop.k.within_limit']).toBe(2);
    expect(moved()['store.answers_by_policy.__policy=deny']).toBeUndefined();
  });
});

describe('what the store asks to send again', () => {
  /** Counts the key `b` from so many milliseconds on, and all others at once. */
  function movingUntil(end: number): ScriptedLane {
    return new ScriptedLane(
      (batch) =>
        of(batch.map(({ key, hits }) => (key.includes('_b_') && asyncScheduler.now() < end ? TRY_AGAIN : hits))),
      { span: 1 },
    );
  }

  it('is sent every 20 ms until it is counted, without what has been counted, and delays no other call', () => {
    const lane = movingUntil(60);
    let cancelled: ReturnType<Path['call']>;
    const { outcomes } = play(lane, { onStoreFailure: 'error' }, ({ call }) => ({
      0: () => [call(['k=a', 'k=b']), call(['k=a']), (cancelled = call(['k=b']))],
      30: () => cancelled.cancel('cancelled'),
      63: () => call(['k=b']),
    }));
    expect(lane.sent).toEqual(['a+2 b+2', 'b+2', 'b+1', 'b+2']);
    expect(outcomes).toEqual(['1: OK 8', '64: OK 9', '64: OK 9 8']);
  });

  it('is answered by policy after the decision timeout, and not sent any more', () => {
    const lane = movingUntil(1_000);
    const options = { onStoreFailure: 'allow', timeout: 50 } as const;
    const { outcomes } = play(lane, options, ({ call }) => ({ 0: () => call(['k=b', 'k=a']) }));
    expect(outcomes).toEqual(['43: OK 10 9']);
    expect(lane.sent).toEqual(['b+1 a+1', 'b+1', 'b+1']);
  });

  it('is counted when the service completes meanwhile, which it does after that', () => {
    marbles(({ flush }, scheduler) => {
      const lane = movingUntil(30);
      const lanes = new Lanes({ scheduler, errorOf: (thrown) => thrown as DecisionError });
      const seen: string[] = [];
      lanes.windows$.subscribe({ complete: () => seen.push(`${scheduler.now()}: complete`) });
      function settle(): void {
        seen.push(`${scheduler.now()}: settled`);
      }
      function fail(): void {
        seen.push('failed');
      }
      lanes.add(lane, { operations: [operation('_b_', 1)], isCancelled: false, settle, fail });
      scheduler.schedule(() => lanes.complete(), 5);
      flush();
      expect(seen).toEqual(['41: settled', '41: complete']);
    });
  });
});

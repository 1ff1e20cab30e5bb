import { NEVER, type Observable, Subject, defer, delay, of, throwError } from 'rxjs';
import type { Operation, Result } from '../../src/counting/operation';
import { DecisionError } from '../../src/counting/decision-error';
import { HeavyHitters } from '../../src/limiter/heavy-hitters';
import type { Descriptor } from '../../src/limiter/request';
import { unitByName } from '../../src/rules/unit';
import { operation } from '../../test/support/data/operations';
import { descriptor } from '../../test/support/data/requests';
import type { Deadline } from '../../src/streams/deadline';
import { type Path, type PathOptions, play as playPath, times } from '../support/decision-path';
import { type LaneOptions, ScriptedLane } from '../support/scripted-lanes';

const AWAY = new DecisionError('store_failed', 'there is no connection', { isUncounted: true });
const CUT = new DecisionError('store_failed', 'the connection was lost');
const OF_KEY = new DecisionError('store_failed', 'not an integer', { isUncounted: true, isKeyError: true });

/**
 * A server that counts, does so late, does not get what is sent, loses its connections after counting, hangs, has no
 * free connection, or rejects keys.
 */
class Server extends ScriptedLane {
  state: 'up' | 'late' | 'away' | 'cut' | 'hangs' | 'busy' | 'rejects' = 'up';
  readonly counts: Record<string, number> = {};
  readonly #replyTime: number;

  /** @param replyTime in milliseconds */
  constructor(options: LaneOptions = {}, replyTime = 0) {
    super((batch) => defer(() => this.#reply(batch)), { span: 1, windowsInFlight: 9, ...options });
    this.#replyTime = replyTime;
  }

  override apply(batch: readonly Operation[], deadline: Deadline): PromiseLike<readonly Result[]> {
    deadline.mayHaveCounted = this.state !== 'busy';
    return super.apply(batch, deadline);
  }

  #reply(batch: readonly Operation[]): Observable<readonly Result[]> {
    if (this.state === 'away') return throwError(() => AWAY);
    if (this.state === 'hangs' || this.state === 'busy') return NEVER;
    if (this.state === 'rejects') return of(batch.map(() => OF_KEY));
    const counts = batch.map(({ key, hits }) => {
      const [, , value = ''] = key.split('_');
      return (this.counts[value] = Math.max(0, (this.counts[value] ?? 0) + hits));
    });
    if (this.state === 'cut') return throwError(() => CUT);
    return of(counts).pipe(delay(this.state === 'late' ? 30 : this.#replyTime));
  }
}

type Options = Omit<PathOptions, 'onStoreFailure'>;
type Lanes = Parameters<typeof playPath>[0];
type Steps = Parameters<typeof playPath>[2];

/** Plays steps on a path with the policy `local`. */
function play(lanes: Lanes, options: Options, steps: Steps): Path {
  return playPath(lanes, { ...options, onStoreFailure: 'local' }, steps);
}

function hitting(text: string, hitsAddend: number, isNegativeHits = false): Descriptor {
  return descriptor(text, { hitsAddend, isNegativeHits });
}

describe('a call that is answered by the policy local', () => {
  it.each([
    [0, 1, 10],
    [0, 3, 4],
    [4, 1, 6],
    [4, 3, 2],
    [4, 4, 2],
    [9, 1000, 1],
    [10, 1, 0],
  ])(
    'passes while the share of what is left of the limit lasts: after %i of 10 hits, divided by %i, %i more',
    (before, share, passed) => {
      const server = new Server();
      const { outcomes } = play(server, { share }, ({ call }) => ({
        0: () => before > 0 && call([hitting('k=x', before)]),
        5: () => (server.state = 'away'),
        6: times(20, () => call(['k=x'])),
      }));
      expect(outcomes.slice(before > 0 ? 1 : 0).filter((outcome) => outcome.includes('OK'))).toHaveLength(passed);
    },
  );

  it('has the rest of the whole limit, counts for its rule and names the policy, but is not in the local cache', () => {
    const offenders = new HeavyHitters({ capacity: 9, windowSeconds: 60 });
    const responseHeaders = { limit: 'limit', remaining: 'remaining', reset: 'reset' };
    const options = { share: 2, offenders, responseHeaders, localCacheBytes: 1000 };
    const server = new Server();
    const { outcomes, headers, moved } = play(server, options, ({ call }) => ({
      0: () => call([hitting('k=x', 6)]),
      5: () => (server.state = 'away'),
      6: times(3, () => call(['k=x'])),
      8: () => (server.state = 'up'),
      9: () => call(['k=x']),
      14: () => call(['k=x']),
    }));
    expect(outcomes).toEqual(['1: OK 4', '7: OK 3', '7: OK 1', '7: OVER_LIMIT 0', '10: OK 0', '15: OVER_LIMIT 0']);
    expect(headers).toContain('x-ratelimit-degraded: local');
    const ofRule = { total_hits: 11, within_limit: 9, near_limit: 2, over_limit: 2 };
    for (const [name, value] of Object.entries(ofRule)) expect(moved()[`shop.k.${name}`]).toBe(value);
    expect(moved()['store.answers_by_policy.__policy=local']).toBe(3);
    expect(moved()['shop.k.over_limit_with_local_cache']).toBeUndefined();
    expect(offenders.top({ limit: 9 }, 0)).toMatchObject([{ limited: 2 }]);
  });

  it('has the whole rest if it has no hits, however many instances share it', () => {
    const server = new Server();
    const { outcomes } = play(server, { share: 3 }, ({ call }) => ({
      0: () => call([hitting('k=x', 6)]),
      5: () => (server.state = 'away'),
      6: () => call([hitting('k=x', 0)]),
    }));
    expect(outcomes).toEqual(['1: OK 4', '7: OK 4']);
  });

  it('has the rest of a window of the calendar until that ends, and then the next one', () => {
    const server = new Server();
    // Virtual time begins at 09:00 in Tokyo.
    const end = 15 * 3_600_000;
    const { outcomes } = play(server, {}, ({ call }) => ({
      0: () => call([hitting('day=x', 8)]),
      5: () => (server.state = 'away'),
      6: times(3, () => call(['day=x'])),
      [end - 2]: () => call(['day=x']),
      [end]: () => call(['day=x']),
    }));
    const left = ['1: OK 2', '7: OK 1', '7: OK 0', '7: OVER_LIMIT 0'];
    expect(outcomes).toEqual([...left, `${end - 1}: OVER_LIMIT 0`, `${end + 1}: OK 9`]);
  });

  it('lowers the count by negative hits, passes in shadow mode, and is over a limit of 0', () => {
    const server = new Server();
    const { outcomes } = play(server, {}, ({ call }) => ({
      0: () => call([hitting('k=x', 9)]),
      5: () => (server.state = 'away'),
      6: times(2, () => call(['k=x'])),
      8: () => call([hitting('k=x', 3, true)]),
      10: times(2, () => call(['k=x'])),
      12: times(11, () => call(['shadow=x'])),
      14: () => call(['none=x']),
    }));
    const calls = ['7: OK 0', '7: OVER_LIMIT 0', '9: OK 2', '11: OK 1', '11: OK 0'];
    expect(outcomes.slice(1, 6)).toEqual(calls);
    expect(outcomes.slice(-2)).toEqual(['13: OK 0', '15: OVER_LIMIT 0']);
  });

  it('does not know counts of the store up to an eighth of their limit, and follows those that fall', () => {
    const server = new Server();
    const { outcomes } = play(server, {}, ({ call }) => ({
      0: () => call(['k=low']),
      1: () => call([hitting('k=high', 8)]),
      4: () => (server.counts['high'] = 0),
      5: () => call(['k=high']),
      9: () => (server.state = 'away'),
      10: () => call(['k=low', 'k=high']),
    }));
    expect(outcomes.at(-1)).toBe('11: OK 9 8');
  });

  it('starts again when an operator has changed the counter', () => {
    const server = new Server();
    const { outcomes } = play(server, {}, ({ call, limiter }) => ({
      0: () => call([hitting('k=x', 10)]),
      5: () => (server.state = 'away'),
      6: () => call(['k=x']),
      8: () => limiter.forget('shop_k_x_0'),
      9: () => call(['k=x']),
    }));
    expect(outcomes.slice(1)).toEqual(['7: OVER_LIMIT 0', '10: OK 9']);
  });

  it('counts only the descriptors that are over when those of a call are counted together', () => {
    const server = new Server();
    const { outcomes } = play(server, { stopIncrementWhenOverLimit: true }, ({ call }) => ({
      0: () => call([hitting('k=x', 10)]),
      5: () => (server.state = 'away'),
      7: () => call(['k=x', 'k=y']),
      9: () => call(['k=y']),
      11: () => (server.state = 'up'),
      12: () => call(['k=z']),
    }));
    expect(outcomes.slice(1)).toEqual(['8: OVER_LIMIT 0 10', '10: OK 9', '13: OK 9']);
    expect(server.sent.slice(1)).toEqual(['x+1 y+1', 'y+1', 'z+1', 'x+1 y+1']);
  });
});

describe('hits that the policy local has counted', () => {
  /** Calls while the server is in a state, and one of another key when it is back. */
  function added(state: Server['state'], descriptors: readonly (string | Descriptor)[], options: Options = {}) {
    const server = new Server();
    const path = play(server, { timeout: 5, ...options }, ({ call }) => ({
      0: () => call([hitting('k=x', 5)]),
      5: () => (server.state = state),
      10: () => descriptors.forEach((each) => call([each])),
      20: () => (server.state = 'up'),
      21: () => call(['k=other']),
    }));
    const { sent, counts } = server;
    return { ...path, sent, counts };
  }

  it('are added once to the store when it answers, if they were not sent to it', () => {
    for (const state of ['away', 'busy'] as const) {
      const { sent, counts, local } = added(state, ['k=x', hitting('k=x', 4), 'k=y']);
      expect(sent.slice(2)).toEqual(['other+1', 'x+5 y+1']);
      expect(counts).toEqual({ x: 10, y: 1, other: 1 });
      expect(local.unsentHits).toBe(0);
    }
  });

  it('are not added when the store may have counted them', () => {
    expect(added('cut', ['k=x', 'k=y']).counts).toEqual({ x: 6, y: 1, other: 1 });
    expect(added('hangs', ['k=x', 'k=y']).counts).toEqual({ x: 5, other: 1 });
  });

  it('are not added when the store rejects their key, or when that is turned off', () => {
    expect(added('rejects', ['k=x', 'k=y']).counts).toEqual({ x: 5, other: 1 });
    const { outcomes, counts } = added('away', ['k=x', 'k=y'], { reconciles: false });
    expect(counts).toEqual({ x: 5, other: 1 });
    expect(outcomes).toEqual(['1: OK 5', '11: OK 4', '11: OK 9', '22: OK 9']);
  });

  it('are added as one sum with negative hits, which may be all there is', () => {
    const calls = [hitting('k=x', 3), hitting('k=x', 7, true), 'k=y', hitting('k=y', 1, true)];
    const { counts, sent } = added('away', calls);
    expect(counts).toEqual({ x: 1, other: 1 });
    expect(sent.at(-1)).toBe('x-4');
  });

  it('are not added when their window has ended', () => {
    const server = new Server();
    play(server, {}, ({ call }) => ({
      0: () => (server.state = 'away'),
      900: () => call(['s=x', 'k=y']),
      1000: () => (server.state = 'up'),
      1100: () => call(['k=other']),
    }));
    expect(server.counts).toEqual({ other: 1, y: 1 });
  });

  it('are not taken any more when their window has ended', () => {
    const server = new Server();
    const { local } = play(server, {}, ({ call }) => ({
      0: () => (server.state = 'away'),
      1: () => call(['s=x', 'k=y']),
    }));
    expect([local.unsentHits, local.take(server, 1).map(({ key }) => key)]).toEqual([2, ['shop_k_y_0']]);
  });

  it('are added until the last of the windows ends in which they were counted', () => {
    const server = new Server();
    const perSecond = descriptor('k=x', { limit: { requestsPerUnit: 5, unit: unitByName('SECOND') } });
    play(server, {}, ({ call }) => ({
      0: () => (server.state = 'away'),
      900: () => [perSecond, 'k=x'].forEach((each) => call([each])),
      1000: () => (server.state = 'up'),
      1100: () => call(['k=other']),
    }));
    expect(server.counts).toEqual({ other: 1, x: 2 });
  });

  it('are added if a caller was answered while they were gathered, but not if they were sent', () => {
    const server = new Server({ windowsInFlight: 1 });
    play(server, { timeout: 20 }, ({ call }) => ({
      0: () => (server.state = 'hangs'),
      1: () => call(['k=sent'], 10),
      3: () => call(['k=gathered'], 10),
      20: () => (server.state = 'up'),
      30: () => call(['k=other']),
    }));
    expect(server.counts).toEqual({ other: 1, gathered: 1 });
  });

  it('are added once if the call was answered after one server had failed, and before another one had', () => {
    const [one, other] = [new Server(), new Server()];
    play(
      (key) => (key === 'y' ? other : one),
      { timeout: 50 },
      ({ call }) => ({
        0: () => ([one.state, other.state] = ['away', 'busy']),
        1: () => call(['k=x', 'k=y'], 20),
        200: () => (one.state = other.state = 'up'),
        210: () => call(['k=z', 'k=y']),
      }),
    );
    expect([one.counts, other.counts]).toEqual([{ x: 1, z: 1 }, { y: 2 }]);
  });

  it('are part of the counts of the store until they are added', () => {
    const server = new Server();
    const { outcomes } = play(server, {}, ({ call }) => ({
      0: () => (server.state = 'away'),
      1: times(9, () => call(['k=x'])),
      5: () => (server.state = 'up'),
      6: times(2, () => call(['k=x'])),
      9: () => (server.counts['x'] = 0),
      10: () => call(['k=x']),
    }));
    expect(outcomes.slice(9)).toEqual(['7: OK 0', '7: OVER_LIMIT 0', '11: OK 9']);
  });

  it('are added before calls are sent again, one batch at a time; calls in between are counted here, and added as well', () => {
    const server = new Server({}, 2);
    const { outcomes } = play(server, { failures: 1 }, ({ call }) => ({
      0: () => (server.state = 'away'),
      1: () => call(Array.from({ length: 300 }, (_, index) => `k=${index}`)),
      200: () => (server.state = 'up'),
      201: () => call(['k=probe']),
      205: () => call(['k=between']),
      209: () => call(['k=after']),
    }));
    expect(outcomes.slice(1)).toEqual(['204: OK 9', '205: OK 9', '212: OK 9']);
    expect(server.sent.map((batch) => batch.split(' ').length)).toEqual([300, 1, 256, 45, 1]);
    expect(server.counts).toMatchObject({ 0: 1, 299: 1, probe: 1, between: 1, after: 1 });
  });

  it('are added one batch at a time, also when several windows end meanwhile', () => {
    const server = new Server({}, 3);
    play(server, {}, ({ call }) => ({
      0: () => (server.state = 'away'),
      1: () => call(Array.from({ length: 300 }, (_, index) => `k=${index}`)),
      5: () => (server.state = 'up'),
      6: () => call(['k=a']),
      8: () => call(['k=b']),
      11: () => call(['k=c']),
    }));
    expect(server.sent.map((batch) => batch.split(' ').length)).toEqual([300, 1, 1, 256, 1, 44]);
  });

  it('are dropped when their answer does not come in time, and are so once, whatever comes later', () => {
    const server = new Server({}, 1);
    let rates: unknown;
    const { moved } = play(server, { timeout: 20, failures: 5 }, ({ call }) => ({
      0: () => (server.state = 'away'),
      1: () => call(['k=x']),
      5: () => (server.state = 'up'),
      6: () => call(['k=y']),
      8: () => (server.state = 'late'),
      100: () => (rates = server.server!.rates(10)),
    }));
    expect([moved()['store.dropped_hits'], rates]).toMatchObject([1, { requests: 0.2, failures: 0.1 }]);
  });

  it('can be tried on a copy of the counts, which keeps none of them to be added', () => {
    const server = new Server();
    const { local } = play(server, {}, ({ call }) => ({ 0: () => (server.state = 'away'), 1: () => call(['k=x']) }));
    const tried = operation('shop_k_x_0', 2, { limit: 10, onStoreFailure: 'local' });
    const copy = local.copyOf([tried], 0);
    copy.count([tried], 0);
    expect([tried.countAfter, copy.unsentHits]).toEqual([3, 0]);
    expect([local.countOf(tried.key), local.unsentHits]).toEqual([1, 1]);
  });

  it('wait for their own server, and go to the one that has their keys when it has left', () => {
    const left$ = new Subject<void>();
    const [one, other] = [new Server({ retired$: left$ }), new Server()];
    let owner = one;
    play(
      (key) => (key === 'x' ? owner : other),
      {},
      ({ call }) => ({
        0: () => (one.state = 'away'),
        1: () => call(['k=x', 'k=y']),
        5: () => call(['k=y']),
        9: () => {
          owner = other;
          left$.next();
        },
        10: () => call(['k=y']),
      }),
    );
    expect([one.sent, other.sent]).toEqual([['x+1'], ['y+1', 'y+1', 'y+1', 'x+1']]);
  });

  it('are kept when the store fails again before it gets them, and dropped when it may have counted them then', () => {
    const server = new Server({}, 2);
    const { moved, local } = play(server, {}, ({ call, local: counted }) => ({
      0: () => (server.state = 'away'),
      1: () => call(['k=x']),
      5: () => (server.state = 'up'),
      6: () => call(['k=y']),
      8: () => (server.state = 'away'),
      10: () => expect(counted.unsentHits).toBe(1),
      11: () => (server.state = 'up'),
      12: () => call(['k=y']),
      14: () => (server.state = 'cut'),
    }));
    expect([server.counts, local.unsentHits]).toEqual([{ x: 1, y: 2 }, 0]);
    expect(moved()['store.dropped_hits']).toBe(1);
  });

  it('take a bounded amount of memory', () => {
    const server = new Server();
    const long = 'x'.repeat(4000);
    const { moved, local } = play(server, {}, ({ call }) => ({
      0: () => (server.state = 'away'),
      1: () =>
        Array.from({ length: 50 }, (_, group) =>
          call(Array.from({ length: 50 }, (_each, index) => `k=${group}-${index}${long}`)),
        ),
    }));
    const kept = local.unsentHits;
    expect(kept).toBeGreaterThan(1900);
    expect(kept).toBeLessThan(2100);
    expect(moved()['store.dropped_hits']).toBe(2500 - kept);
  });
});

import { NEVER, type Observable, map, timer } from 'rxjs';
import type { RunHelpers, TestScheduler } from 'rxjs/testing';
import type { ServerOutcome } from '../../src/counting/batch';
import type { Operation, Result } from '../../src/counting/operation';
import { DecisionError } from '../../src/counting/decision-error';
import type { Fault } from '../../src/streams/server-report';
import { ServerState } from '../../src/streams/server-state';
import { Lanes } from '../../src/streams/lanes';
import { operation } from '../../test/support/data/operations';
import { marbles } from '../support/marbles';
import { ScriptedLane } from '../support/scripted-lanes';

/** How a window ends whose first call is this, after 2 ms, or 12 with a capital. Others never do. */
const OUTCOMES: Readonly<Record<string, ServerOutcome>> = { o: 'ok', b: 'bad', n: 'none' };
const [REPLY_TIME, LATE] = [2, 12];
const AWAY = new DecisionError('store_failed', 'there is no connection');
const OF_KEY = new DecisionError('store_failed', 'not an integer', { isKeyError: true });

interface Course {
  readonly failures?: number;
  /** How many windows may be in flight. */
  readonly windowsInFlight?: number;
  /** At which millisecond the windows are unsubscribed from. */
  readonly unsubscribe?: number;
}

const RESULTS: Readonly<Record<ServerOutcome, Result>> = { ok: 1, none: OF_KEY, bad: AWAY };

/**
 * Sends windows of 1 ms to a lane with a breaker in virtual time. Returns what happens at which millisecond: `sent`,
 * `refused`, `opens`, `closes`, `fault began` and `fault ended`, with its length, the calls that it affected, and
 * whether the server is up.
 */
function course(source: string, { failures = 3, windowsInFlight = 9, unsubscribe }: Course = {}) {
  const events: string[] = [];
  function play({ cold, flush }: RunHelpers, scheduler: TestScheduler): void {
    function happened(event: string): void {
      events.push(`${scheduler.now()} ${event}`);
    }
    function reply(batch: readonly Operation[]): Observable<readonly Result[]> {
      const [{ key: first } = { key: '' }] = batch;
      happened(`sent ${batch.map(({ key }) => key).join('')}`);
      const outcome = OUTCOMES[first.toLowerCase()];
      if (outcome === undefined) return NEVER;
      const time = first === first.toLowerCase() ? REPLY_TIME : LATE;
      return timer(time, scheduler).pipe(map(() => batch.map(() => RESULTS[outcome])));
    }
    const observer = {
      faultBegan: () => happened('fault began'),
      faultEnded: ({ milliseconds, calls, isUp }: Fault) => happened(`fault ended ${milliseconds} ${calls} ${isUp}`),
    };
    const lane = new ScriptedLane(reply, { span: 1, windowsInFlight });
    const server = (lane.server = new ServerState({ name: { server: 'x' }, scheduler, failures, observer }));
    let wasOpen = false;
    server.reports$.subscribe(({ isHeldBack }) => {
      if (isHeldBack) happened('opens');
      else if (wasOpen) happened('closes');
      wasOpen = isHeldBack;
    });
    const lanes = new Lanes({ scheduler, errorOf: (thrown) => thrown as DecisionError });
    const subscription = lanes.windows$.subscribe({
      complete: () => {
        server.end();
        happened('complete');
      },
    });
    subscription.add(() => server.end());
    cold(source).subscribe({
      next: (key) => {
        lanes.add(lane, {
          operations: [operation(key, 1)],
          isCancelled: false,
          settle: () => undefined,
          fail: ({ message }) => message.startsWith('the counter store does not') && happened(`refused ${key}`),
        });
      },
      complete: () => lanes.complete(),
    });
    if (unsubscribe !== undefined) scheduler.schedule(() => subscription.unsubscribe(), unsubscribe);
    flush();
    if (unsubscribe !== undefined) happened('rest');
  }
  marbles(play);
  return events;
}

/** Without what was sent. */
function withoutSent(events: readonly string[]): readonly string[] {
  return events.filter((event) => !event.includes('sent'));
}

describe('a circuit breaker', () => {
  let random: jest.SpyInstance;
  // Waits are the longest that can be drawn.
  beforeAll(() => (random = jest.spyOn(Math, 'random').mockReturnValue(1)));
  afterAll(() => random.mockRestore());

  const OPENING = ['9 fault began', '9 opens'];

  it('stays closed when fewer windows in a row are bad', () => {
    expect(withoutSent(course('b--b--o--b--b--o-'))).toEqual([]);
  });

  it('opens after so many bad windows in a row, reports it, and refuses what was gathered', () => {
    expect(course('b--b--b-xy').slice(-5)).toEqual(['7 sent b', ...OPENING, '9 refused x', '9 refused y']);
  });

  it('opens when gathered values wait for a window in flight, and refuses them', () => {
    expect(withoutSent(course('b--b--b-h-x', { windowsInFlight: 1 }))).toEqual([
      ...OPENING,
      '9 refused h',
      '10 refused x',
    ]);
  });

  it('opens when more than half of at least ten outcomes of the last second are bad', () => {
    const most = 'o--b--b--o--b--b--o--b--b--o--b--b--o--b-';
    const opening = ['33 fault began', '33 opens', '33 refused b', '36 refused o', '39 refused b'];
    expect(withoutSent(course(most))).toEqual(opening);
    const later = opening.map((event) => event.replace(/^\d+/, (time) => String(Number(time) + 1_000)));
    expect(withoutSent(course(`o 999ms ${most}`))).toEqual(later);
  });

  it('stays closed when half of the outcomes are bad, fewer than ten are known, or they are older than a second', () => {
    const [half, most] = ['o--b--', 'o--b--b--'];
    expect(withoutSent(course(half.repeat(20)))).toEqual([]);
    expect(withoutSent(course(most.repeat(3)))).toEqual([]);
    expect(withoutSent(course(`${most.repeat(2)} 1100ms ${most.repeat(3)}`))).toEqual([]);
    expect(withoutSent(course('n--'.repeat(20)))).toEqual([]);
  });

  it('needs twice as many outcomes as failures when that is more than ten', () => {
    expect(withoutSent(course('o--b--b--'.repeat(5), { failures: 8 }))).toEqual([]);
    expect(withoutSent(course('o--b--b--'.repeat(6), { failures: 8 }))[1]).toBe('51 opens');
  });

  it('refuses values at once while it is open, and sends none', () => {
    expect(course('b--b--b---x-y').slice(-4)).toEqual([...OPENING, '10 refused x', '12 refused y']);
  });

  it.each(['O', 'B'])('ignores that a window which was in flight when it opened ends with %s', (last) => {
    expect(withoutSent(course(`${last}-b--b--b-----x`))).toEqual(['11 fault began', '11 opens', '14 refused x']);
  });

  it('is half-open when its wait is over: the next window is a probe, until whose end further values are refused', () => {
    const events = course('b--b--b-- 300ms op-x-oz');
    expect(events.slice(-7)).toEqual([
      ...OPENING,
      '310 sent op',
      '312 refused x',
      '312 closes',
      '315 sent oz',
      '5312 fault ended 303 4 true',
    ]);
  });

  it('opens again for longer after each bad probe, up to half a second, and reports one fault', () => {
    const probes = 'b--b--b-- 101ms b 203ms b 403ms b 503ms b 503ms o';
    const events = withoutSent(course(`${probes} 104ms o`));
    expect(events).toEqual([
      ...OPENING,
      '113 opens',
      '317 opens',
      '721 opens',
      '1225 opens',
      '1729 closes',
      '6729 fault ended 1720 7 true',
    ]);
  });

  it('refuses calls until the wait after a bad probe is over, which is longer than the one before', () => {
    const events = withoutSent(course('b--b--b-- 101ms b 201ms x-b'));
    expect(events.slice(2)).toEqual(['113 opens', '312 refused x', '317 opens']);
  });

  it('opens again when a probe takes more than a second', () => {
    expect(withoutSent(course('b--b--b-- 101ms h 1009ms x')).slice(2, 4)).toEqual(['1111 opens', '1120 refused x']);
  });

  it('forgets the outcomes from before the fault when it closes', () => {
    const events = withoutSent(course(`${'o--b--b--'.repeat(4)} 101ms o---b--b--`));
    expect(events.slice(-2)).toEqual(['140 closes', '5140 fault ended 107 4 true']);
  });

  it('sends another probe when one shows nothing', () => {
    expect(withoutSent(course('b--b--b-- 101ms n---o--')).slice(2)).toEqual([
      '117 closes',
      '5117 fault ended 108 3 true',
    ]);
  });

  it('reports faults less than five seconds apart as one; after a longer pause, the waits begin with the shortest again', () => {
    const events = course('b--b--b-- 101ms o 4s b--b--b-- 201ms o 6s b--b--b-- 101ms o--');
    expect(withoutSent(events)).toEqual([
      ...OPENING,
      '113 closes',
      '4120 opens',
      '4324 closes',
      '9324 fault ended 4315 6 true',
      '10331 fault began',
      '10331 opens',
      '10435 closes',
      '15435 fault ended 104 3 true',
    ]);
  });

  it('completes at once when it is open, and reports the end of the fault', () => {
    expect(withoutSent(course('b--b--b---|'))).toEqual([
      ...OPENING,
      '10 closes',
      '10 fault ended 1 3 false',
      '10 complete',
    ]);
  });

  it('completes when the windows in flight have ended, and the probe, which is sent at once', () => {
    expect(withoutSent(course('b--b|'))).toEqual(['6 complete']);
    const events = course('b--b--b-- 101ms (h|)');
    expect(events.slice(-4)).toEqual(['110 sent h', '1110 closes', '1110 fault ended 1101 3 false', '1110 complete']);
  });

  it('reports the end of a fault when it is unsubscribed from, and nothing is scheduled then', () => {
    const events = withoutSent(course('(bb)--b--b-------', { unsubscribe: 14 }));
    expect(events).toEqual(['12 fault began', '12 opens', '14 closes', '14 fault ended 2 4 false', '14 rest']);
  });

  it('sends every window when it may not open, and reports the fault', () => {
    const events = course('b--'.repeat(30), { failures: 0 });
    expect([events.length, withoutSent(events)]).toEqual([31, ['15 fault began']]);
  });
});

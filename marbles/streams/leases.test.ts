import { NEVER, delay, of } from 'rxjs';
import { ExpiringCounts, TimedCounts } from '../../src/counting/counts';
import { Leases } from '../../src/counting/leases';
import { run } from '../../src/counting/simulate';
import { Counter } from '../../src/statistics/counter';
import { decisionPath } from '../support/decision-path';
import { marbles } from '../support/marbles';
import { ScriptedLane } from '../support/scripted-lanes';

/** Milliseconds: when the store stops answering, when the calls end, and how long each may wait for the store. */
const [AWAY, END, TIMEOUT] = [300, 1_000, 100];

/**
 * Calls a leased key every 5 ms, of which the policy denies those that are not counted. Calls are answered in their
 * order.
 */
const { ended, sent } = marbles(({ flush }, scheduler) => {
  function now(): number {
    return scheduler.now();
  }
  const table = new TimedCounts(new ExpiringCounts({ maxKeys: 10 }));
  const lane = new ScriptedLane((batch) => (now() < AWAY ? of(run(batch, table)).pipe(delay(1, scheduler)) : NEVER), {
    span: 0,
    windowsInFlight: 10,
  });
  const tally = new Counter('');
  const tallies = { grantedHits: tally, usedHits: tally, returnedHits: tally, unusedHits: tally, savedCalls: tally };
  const leaseTable = new Leases({ isAuto: false, now, wallClock: now, ...tallies });
  const options = { leases: 'rules', leaseTable, onStoreFailure: 'deny', timeout: TIMEOUT } as const;
  const { call, outcomes } = decisionPath(() => lane, scheduler, options);
  for (let at = 0; at < END; at += 5) scheduler.schedule(() => call(['busy=x']), at);
  flush();
  return {
    ended: outcomes.map((outcome, index) => {
      return { made: index * 5, waited: parseInt(outcome, 10) - index * 5, isPassed: outcome.includes('OK') };
    }),
    sent: lane.sent,
  };
});

it('calls on a leased key pass without waiting while the store does not answer, until what is held is used up', () => {
  const bridged = ended.findIndex(({ waited }, index) => index * 5 >= AWAY && waited > 0) * 5;
  // Enough for a stall of 60 ms.
  expect(bridged).toBeGreaterThanOrEqual(AWAY + 60);
  expect(ended.slice(AWAY / 5, bridged / 5).every(({ isPassed }) => isPassed)).toBe(true);
});

it('calls on a leased key are answered by the policy when nothing is held any more, and none waits for the store twice', () => {
  const last = ended.slice((AWAY + 150) / 5);
  expect([ended.length, last.every(({ isPassed }) => !isPassed)]).toEqual([END / 5, true]);
  expect(Math.max(...ended.map(({ waited }) => waited))).toBe(TIMEOUT);
});

it('calls on a leased key are sent as without leases when the store stalls, so that its failure is noticed as soon', () => {
  expect(sent.filter((batch) => batch === 'x+1').length).toBeGreaterThan(5 * ((END - AWAY) / TIMEOUT));
});

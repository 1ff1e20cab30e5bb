import { type Observable, map, mergeMap, timer } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import { Deadline } from '../../src/streams/deadline';
import { decisionPath } from '../support/decision-path';
import { marbles } from '../support/marbles';
import { ScriptedLane, freshCounts } from '../support/scripted-lanes';

/** Emits after so many milliseconds. What else is due at the same one, and was scheduled before, comes first. */
function lastAfter(milliseconds: number): Observable<unknown> {
  return timer(milliseconds / 2).pipe(mergeMap(() => timer(milliseconds / 2)));
}

describe('a call whose time is over', () => {
  const LIMIT = 20;
  /** How a call is answered at 1 ms, by a store with the policy `deny` that replies after some time. */
  function outcomeOf(replyTime: number, timeToAnswer?: number): string | undefined {
    return marbles(({ flush }, scheduler) => {
      const lane = new ScriptedLane((batch) => lastAfter(replyTime).pipe(map(() => freshCounts(batch))), { span: 1 });
      const { call, outcomes } = decisionPath(() => lane, scheduler, { onStoreFailure: 'deny', timeout: LIMIT });
      call(['k=x'], timeToAnswer);
      flush();
      return outcomes[0];
    });
  }

  it('has the count of a reply that arrives in the same turn as the end of STORE_DECISION_TIMEOUT, not of a later one', () => {
    expect(outcomeOf(LIMIT)).toBe('21: OK 9');
    expect(outcomeOf(LIMIT + 2)).toBe('21: OVER_LIMIT 0');
  });

  it('has the count of a reply that arrives in the same turn as the end of what its caller waits for, not of a later one', () => {
    expect(outcomeOf(12, 13)).toBe('13: OK 9');
    expect(outcomeOf(14, 13)).toBe('13: OVER_LIMIT 0');
  });
});

describe('a deadline', () => {
  /** What happens to a deadline of some limits at which milliseconds; `work` is done with it. */
  function course(limits: readonly number[], work: (deadline: Deadline, scheduler: TestScheduler) => void): string[] {
    return marbles(({ flush }, scheduler) => {
      const events: string[] = [];
      const deadline = new Deadline(scheduler);
      for (const limit of limits) deadline.passWithin(limit);
      deadline.watch(() => events.push(`${scheduler.now()} cut ${deadline.hasPassed}`));
      deadline.watch(() => events.push(`${scheduler.now()} not begun`), true);
      work(deadline, scheduler);
      flush();
      return events;
    });
  }

  it('notifies what the work waits for once, at the earliest of its limits', () => {
    expect(course([9, 3, 6], () => undefined)).toEqual(['3 cut true', '3 not begun']);
    expect(course([], () => undefined)).toEqual([]);
  });

  it('passes for a reply only after those of the same turn, but nothing is sent in it', () => {
    const events = course([6], (deadline) => {
      lastAfter(6).subscribe(() => {
        expect(deadline.hasPassed).toBe(true);
        deadline.end();
      });
    });
    expect(events).toEqual([]);
  });

  it('of abandoned work lets end what has begun, and passes then', () => {
    const events = course([9], (deadline, scheduler) => scheduler.schedule(() => deadline.abandon(), 4));
    expect(events).toEqual(['4 not begun', '9 cut true']);
  });

  it('does not pass when the work is done before', () => {
    const events = course([9, 5], (deadline, scheduler) => {
      scheduler.schedule(() => deadline.end(), 4);
      scheduler.schedule(() => expect(deadline.hasPassed).toBe(false), 10);
    });
    expect(events).toEqual([]);
  });
});

import { type Observable, map, mergeMap, timer } from 'rxjs';
import { Trip, Trips } from '../../src/streams/deadline';
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

describe('a trip', () => {
  interface Ends {
    readonly timeout?: number;
    readonly answerWithin?: number;
  }

  /** What happens to a trip, which has begun on a connection and waits for another one, at which milliseconds. */
  function course({ timeout, answerWithin }: Ends, work: (trip: Trip, trips: Trips) => unknown = () => 0): string[] {
    return marbles(({ flush }, scheduler) => {
      const events: string[] = [];
      function happens(event: string) {
        return () => events.push(`${scheduler.now()} ${event}`);
      }
      const trips = new Trips({ scheduler, timeout });
      const trip = new Trip();
      trip.unanswered = happens('unanswered');
      trips.begin(trip, answerWithin);
      trip.begin({ cut: happens('cut') });
      trip.whileWaiting(happens('waits no longer'));
      work(trip, trips);
      flush();
      return events;
    });
  }

  it('is cut at the end of KVSTORE_TIMEOUT, and waits for nothing from the end of STORE_DECISION_TIMEOUT on', () => {
    expect(course({})).toEqual([]);
    expect(course({ timeout: 9 })).toEqual(['9 waits no longer', '9 cut']);
    expect(course({ timeout: 9, answerWithin: 4 })).toEqual(['4 waits no longer', '4 unanswered', '9 cut']);
    expect(course({ timeout: 4, answerWithin: 9 })).toEqual(['4 waits no longer', '4 cut', '9 unanswered']);
  });

  it('ends for a reply only after those of the same turn, but nothing is sent in it', () => {
    const events = course({ timeout: 6, answerWithin: 6 }, (trip, trips) => {
      lastAfter(6).subscribe(() => {
        expect(trip.hasPassed).toBe(true);
        trips.ended(trip);
      });
    });
    expect(events).toEqual([]);
  });

  it('is not cut on a connection that it has left, nor when it has ended', () => {
    function leave(trip: Trip): void {
      const [first, second] = [{ cut: () => undefined }, { cut: () => expect(false).toBe(true) }];
      for (const connection of [first, second]) trip.begin(connection);
      trip.left(second);
    }
    expect(course({ timeout: 9 }, leave)).toEqual(['9 waits no longer', '9 cut']);
    expect(course({ timeout: 9, answerWithin: 5 }, (trip, trips) => trips.ended(trip))).toEqual([]);
  });

  it('ends in time for a drain, as those do that begin later, which have at least a second', () => {
    function drain(_: Trip, trips: Trips): void {
      trips.endWithin(4_500);
      timer(1_500).subscribe(() => {
        const last = new Trip();
        trips.begin(last);
        last.begin({ cut: () => expect(last.sentAt).toBe(1_500) });
        timer(999).subscribe(() => expect(last.hasPassed).toBe(false));
        timer(1_001).subscribe(() => expect(last.hasPassed).toBe(true));
      });
    }
    expect(course({ timeout: 10_000 }, drain)).toEqual(['2000 waits no longer', '2000 cut']);
    const sooner = course({ timeout: 9 }, (_, trips) => trips.endWithin(4_500));
    expect(sooner).toEqual(['9 waits no longer', '9 cut']);
  });
});

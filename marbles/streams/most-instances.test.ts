import { mostInstances } from '../../src/streams/most-instances';
import { marbles } from '../support/marbles';

/** What is emitted until which second, by how many are seen from which second on, and the seconds of an outage. */
function course(until: number, seen: Readonly<Record<number, number>>, away: readonly [number, number] = [-1, -1]) {
  return marbles(({ flush }, scheduler) => {
    const events: string[] = [];
    function second(): number {
      return scheduler.now() / 1_000;
    }
    function look(): number {
      return Object.entries(seen).findLast(([since]) => Number(since) <= second())![1];
    }
    function isAway(): boolean {
      return second() >= away[0] && second() < away[1];
    }
    const following = mostInstances(look, isAway, scheduler).subscribe((count) => events.push(`${second()} ${count}`));
    scheduler.schedule(() => following.unsubscribe(), until * 1_000);
    flush();
    return events;
  });
}

describe('the number of instances that share a limit', () => {
  it('is the most of ten minutes: it rises with the next look, and falls ten minutes later', () => {
    expect(course(1_300, { 0: 1, 1: 3, 100: 5, 110: 2 })).toEqual(['0 1', '2 3', '102 5', '702 2']);
  });

  it('does not fall while the store is away, although others are not seen, and rises', () => {
    const seen = { 0: 4, 20: 1, 500: 6, 520: 1 };
    expect(course(3_000, seen, [10, 1_500])).toEqual(['0 4', '502 6', '2092 1']);
  });
});

import fc from 'fast-check';
import { type Change, Changes } from '../../src/statistics/changes';
import { RULE_STATS } from '../../src/statistics/rule-statistics';
import { Statistics } from '../../src/statistics/statistics';

function confirmAll(changes: Changes): readonly Change[] {
  const changed: Change[] = [];
  for (const batch of changes.batches(3)) changed.push(...batch);
  return changed;
}

describe('changes since they were last confirmed', () => {
  it('are the growth of counters and rules, without those that did not change', () => {
    const statistics = new Statistics(0);
    const changes = new Changes(statistics);
    const counter = statistics.counter('a.b');
    statistics.counter('still');
    const rule = statistics.rule('d.k');
    counter.add(2);
    rule.totalHits += 5;
    rule.overLimit += 1;
    expect(confirmAll(changes)).toEqual([
      { name: 'a.b', tags: {}, delta: 2 },
      { name: 'ratelimit.service.rate_limit.d.k.total_hits', tags: {}, delta: 5 },
      { name: 'ratelimit.service.rate_limit.d.k.over_limit', tags: {}, delta: 1 },
    ]);
    counter.add(1);
    expect(confirmAll(changes)).toEqual([{ name: 'a.b', tags: {}, delta: 1 }]);
    expect(confirmAll(changes)).toEqual([]);
  });

  it('contain the tags of a counter separately from its name', () => {
    const statistics = new Statistics(0);
    statistics.counter('ratelimit.memcache.multiget.__code=success').add(1);
    expect(confirmAll(new Changes(statistics))).toEqual([
      { name: 'ratelimit.memcache.multiget', tags: { code: 'success' }, delta: 1 },
    ]);
  });

  it('do not treat request values as tags', () => {
    const statistics = new Statistics(10);
    statistics.runtimeRule('d.k_.__a=b', 'd.k').totalHits += 1;
    statistics.runtimeCounter('x.__a=b.domain_not_found', 'other.domain_not_found').add(1);
    expect(confirmAll(new Changes(statistics)).map(({ tags }) => tags)).toEqual([{}, {}]);
  });

  it('are confirmed when the next batch is requested, and not before', () => {
    const statistics = new Statistics(0);
    const changes = new Changes(statistics);
    for (const name of ['a', 'b', 'c', 'd']) statistics.counter(name).add(1);
    const seen: string[] = [];
    for (const batch of changes.batches(2)) {
      seen.push(batch.map(({ name }) => name).join(''));
      if (seen.length === 2) break;
    }
    expect(seen).toEqual(['ab', 'cd']);
    expect(confirmAll(changes).map(({ name }) => name)).toEqual(['c', 'd']);
  });

  it('are confirmed up to the given number if the loop is left', () => {
    const statistics = new Statistics(0);
    const changes = new Changes(statistics);
    for (const name of ['a', 'b', 'c', 'd', 'e']) statistics.counter(name).add(1);
    for (const batch of changes.batches(3)) {
      if (batch[0]?.name === 'a') continue;
      changes.confirmFirst(1);
      break;
    }
    statistics.counter('d').add(2);
    expect(confirmAll(changes).map(({ name, delta }) => name + delta)).toEqual(['d2', 'e1']);
  });

  it('include what is counted while a batch is being sent', () => {
    const statistics = new Statistics(0);
    const changes = new Changes(statistics);
    const counter = statistics.counter('a');
    counter.add(1);
    for (const _ of changes.batches(10)) counter.add(4);
    expect(confirmAll(changes)).toEqual([{ name: 'a', tags: {}, delta: 4 }]);
  });

  it('come in batches even if few of many statistics changed, so that the search does not block', () => {
    const statistics = new Statistics(0);
    for (let index = 0; index < 100; index += 1) statistics.rule(`d.k${index}`);
    const empty = [...new Changes(statistics).batches(10)];
    expect(empty.length).toBeGreaterThan(5);
    expect(empty.flat()).toEqual([]);
  });

  it('add up to the counters for any sequence of counting, confirming and leaving the loop', () => {
    const step = fc.record({ counter: fc.nat(4), amount: fc.nat(100), takes: fc.nat(8) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const statistics = new Statistics(0);
        const changes = new Changes(statistics);
        const received = new Map<string, number>();
        function receive(batch: readonly Change[]) {
          for (const { name, delta } of batch) received.set(name, (received.get(name) ?? 0) + delta);
        }
        for (const { counter, amount, takes } of steps) {
          statistics.counter(`c${counter}`).add(amount);
          statistics.rule(`d.r${counter}`)[RULE_STATS[counter]?.[1] ?? 'totalHits'] += amount;
          let left = takes;
          for (const batch of changes.batches(2)) {
            if (left === 0) break;
            left -= 1;
            receive(batch);
          }
        }
        for (const batch of changes.batches(2)) receive(batch);
        const counted = [...statistics.entries()].filter(
          ([name, value]) => value !== 0 && !name.startsWith('ratelimit.statistics.'),
        );
        expect(new Map(counted)).toEqual(new Map([...received].filter(([, value]) => value !== 0)));
      }),
    );
  });
});

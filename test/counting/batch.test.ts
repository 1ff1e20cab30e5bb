import { Batch } from '../../src/counting/batch';
import { ExpiringCounts, TimedCounts } from '../../src/counting/counts';
import { DecisionError, poolEmpty, timedOut } from '../../src/counting/decision-error';
import { algorithmOf } from '../../src/counting/limit';
import { LARGEST_COUNT, type Operation } from '../../src/counting/operation';
import { run } from '../../src/counting/simulate';
import { TestCall } from '../support/data/calls';
import { allOrNothingGroup, operation, stopWhenOver, windowOf } from '../support/data/operations';

// That merged calls have the counts of calls one by one: simulate.test.ts.

/** A call of operations written as `a+1` or `a-5`. */
function call(text: string, parts: Parameters<typeof operation>[2] = {}): TestCall {
  return new TestCall(
    text.split(' ').map((each) => operation(each[0]!, Number(each.slice(1)), { limit: 10, ...parts })),
  );
}

function calls(...texts: readonly string[]): readonly TestCall[] {
  return texts.map((text) => call(text));
}

function sentBy(all: readonly TestCall[]): string {
  return new Batch(all).operations.map(({ key, hits }) => `${key}${hits < 0 ? '' : '+'}${hits}`).join(' ');
}

/** Sends a batch to a store that has no counters yet. */
function settle(all: readonly TestCall[]): Batch {
  const batch = new Batch(all);
  batch.settle(run(batch.operations, new TimedCounts(new ExpiringCounts({ maxKeys: 100 }))));
  return batch;
}

describe('a batch', () => {
  const most = LARGEST_COUNT - 1e15 - 1;

  it.each([
    ['has additions to one key as one operation', ['a+1', 'b+2', 'a+3', 'a+0'], 'a+4 b+2'],
    ['keeps negative hits at their position', ['a+1', 'a+2', 'a-5', 'a+3', 'a+4'], 'a+3 a-5 a+7'],
    ['merges up to the sum that shows each as over any limit', [`a+${most - 1}`, 'a+1', 'a+1'], `a+${most} a+1`],
    ['does not merge with a saturating addition', [`a+${LARGEST_COUNT}`, 'a+1'], `a+${LARGEST_COUNT} a+1`],
  ])('%s', (_, texts, sent) => {
    expect(sentBy(calls(...texts))).toBe(sent);
  });

  it('counts merged hits, and its calls', () => {
    const { mergedHits, size } = new Batch(calls('a+1', 'b+2', 'a+3', 'a+4', 'a+0'));
    expect([mergedHits, size]).toEqual([7, 5]);
  });

  it.each([
    [
      ['report', 5],
      ['ask', 0],
    ],
    [
      ['ask', 0],
      ['report', 5],
    ],
  ] as const)('of %j reports the hits', (...parts) => {
    const all = parts.map(([purpose, hits]) => {
      const made = call(`a+${hits}`);
      for (const each of made.operations) each.purpose = purpose;
      return made;
    });
    expect(new Batch(all).operations.map(({ purpose, hits }) => [purpose, hits])).toEqual([['report', 5]]);
  });

  it('has the longest window in which hits are added, not of reads, and apart from the end of a window of the calendar', () => {
    function sentWindows(...of: readonly (readonly [hits: number, seconds: number])[]) {
      const { operations } = new Batch(of.map(([hits, seconds]) => call(`a+${hits}`, windowOf(seconds))));
      return operations.map(({ hits, limit: { lengthSeconds, endsAt } }) => `${hits} in ${endsAt ?? lengthSeconds}`);
    }
    expect(sentWindows([1, 60], [1, 3600], [1, 1])).toEqual(['3 in 3600']);
    expect(sentWindows([0, 3600], [1, 60], [0, 3600], [2, 1])).toEqual(['3 in 60']);
    const [day, month] = [1_764_028_800, 1_764_547_200];
    const sent = ['1 in 60', `2 in ${month}`, '1 in 604800'];
    expect(sentWindows([1, 60], [1, day], [1, month], [1, 604_800])).toEqual(sent);
  });

  it('keeps a group that stops when over together and at its position', () => {
    const [first, ...others] = calls('a+1', 'a+1', 'c+1', 'b+1');
    const grouped = call('a+1 b+1', { limit: 1, group: stopWhenOver() });
    expect(sentBy([first!, grouped, ...others])).toBe('a+1 a+1 b+1 a+1 c+1 b+1');
  });

  it('does not merge operations on keys that a map cannot find quickly, and counts them in order', () => {
    const lengths = [4096, 4097].map((length) => {
      const key = 'x'.repeat(length);
      const all = [1, 2].flatMap((hits) => [new TestCall([operation(key, hits)]), ...calls(`a+${hits}`)]);
      const { operations } = settle(all);
      expect(all.map(({ outcome }) => outcome)).toEqual([[1], [1], [3], [3]]);
      return operations.length;
    });
    expect(lengths).toEqual([2, 3]);
  });

  it('leaves out cancelled calls, which get no outcome', () => {
    const [cancelled, other] = calls('a+5', 'a+1') as [TestCall, TestCall];
    cancelled.isCancelled = true;
    settle([cancelled, other]);
    expect([cancelled.outcome, other.outcome]).toEqual([undefined, [1]]);
    expect([cancelled, other].map(({ operations: [each] }) => each!.isSent)).toEqual([false, true]);
  });
});

describe('operations with algorithms', () => {
  const bucket = algorithmOf({ name: 'token_bucket', requestsPerUnit: 3, lengthSeconds: 60, burst: undefined });
  const window = algorithmOf({ name: 'fixed_window', requestsPerUnit: 9, lengthSeconds: 1, burst: undefined });
  const other = algorithmOf({ name: 'token_bucket', requestsPerUnit: 9, lengthSeconds: 60, burst: undefined });

  /** A call on some limits of a rule, or on one that is counted alone. */
  function calling(limits: readonly (readonly [key: string, algorithm: typeof bucket])[], isAlone = false) {
    return (hits: number) => {
      const group = isAlone ? undefined : allOrNothingGroup();
      return new TestCall(limits.map(([key, algorithm]) => operation(key, hits, { algorithm, group })));
    };
  }
  const [B, F, G] = [
    ['b', bucket],
    ['f', window],
    ['g', window],
  ] as const;
  const both = calling([B, F]);
  /** The keys that a batch sends, each with the calls that were merged into its operation. */
  function mergedBy(all: readonly TestCall[]): readonly string[] {
    return settle(all).operations.map(({ key, calls: merged }) => [key, ...(merged ? [merged.join()] : [])].join(' '));
  }

  it('of the calls of one rule are one step, in which each call has its own outcome', () => {
    const all = [1, 1, 2, 1, 1].map(both);
    expect(mergedBy(all)).toEqual(['b 1,1,2,1,1', 'f 1,1,2,1,1']);
    const outcomes = all.map(({ operations }) => operations.map(({ outcome }) => outcome!.isAllowed));
    expect(outcomes).toEqual([true, true, false, true, false].map((isAllowed) => [isAllowed, true]));
    expect(all.map(({ outcome }) => outcome)).toEqual([1, 2, 2, 3, 3].map((count) => [count, count]));
    // A call that does not count has none.
    expect(all.map(({ operations: [each] }) => each!.addedHits)).toEqual([1, 1, 0, 1, 0]);
  });

  it('are steps of their own where one key or limit is another, or there is another group or none', () => {
    const all = [
      ...[both(1), calling([B, G])(1), calling([B], true)(2), calling([B, F, G])(1), both(1)],
      ...[calling([['b', other], F])(1), both(1), calling([F])(1), calling([F], true)(1)],
    ];
    const { operations } = settle(all);
    expect(operations).toEqual(all.flatMap((each) => each.operations));
    const allowed = all.map(({ operations: [each] }) => each!.outcome!.isAllowed);
    expect(allowed).toEqual([true, true, false, true, false, false, false, true, true]);
  });

  it('that give hits back to one window are steps of their own', () => {
    const alone = calling([B], true);
    const all = [alone(1), alone(-1), alone(-2), alone(1)];
    all.slice(1, 3).forEach(({ operations: [returned] }, number) => (returned!.onlyInWindow = number));
    const sent = settle(all).operations.map(({ hits, onlyInWindow = 'any' }) => `${hits} in ${onlyInWindow}`);
    expect(sent).toEqual(['1 in any', '-1 in 0', '-2 in 1', '1 in any']);
  });

  it('join none after which another step has changed one of their counters', () => {
    const all = [both(1), calling([F], true)(1), both(1), both(1)];
    expect(mergedBy(all)).toEqual(['b', 'f', 'f', 'b 1,1', 'f 1,1']);
  });

  it('are a group also where one of them is missing, which the store has not read', () => {
    const part = both(1).operations.slice(0, 1);
    const cut = new TestCall([...part, operation('x', 1)]);
    expect(settle([cut, both(1)]).operations.map(({ key }) => key)).toEqual(['b', 'x', 'b', 'f']);
    expect(cut.outcome).toEqual([1, 1]);
  });
});

describe('the outcome of a batch', () => {
  const failed = new DecisionError('store_failed', 'no');
  const ofKey = new DecisionError('store_failed', 'no counter', { isKeyError: true });

  it('fails only the calls of an operation that failed by itself, or every call when it fails as a whole', () => {
    const late = timedOut();
    const all = calls('a+1', 'a+1 b+1', 'b+1');
    const batch = new Batch(all);
    batch.settle([failed, 2]);
    expect(all.map(({ outcome }) => outcome)).toEqual([failed, failed, [2]]);
    batch.fail(late);
    expect(all.map(({ outcome }) => outcome)).toEqual([late, late, late]);
  });

  it('leaves to a policy what the store has not counted, unless the call can be mended or another operation has none', () => {
    function failure({ operations }: TestCall): readonly (DecisionError | undefined)[] {
      return operations.map((each: Operation) => each.failure);
    }
    for (const error of [failed, timedOut(), poolEmpty(), ofKey]) {
      const [answered, mixed] = [call('a+1', { onStoreFailure: 'allow' }), call('a+1')];
      new Batch([answered]).settle([error]);
      expect([answered.outcome, failure(answered)]).toEqual([[-1], [error]]);
      const whole = new TestCall([...call('b+1', { onStoreFailure: 'deny' }).operations, ...mixed.operations]);
      new Batch([whole]).fail(error);
      expect([whole.outcome, failure(whole)]).toEqual([error, [error, undefined]]);
    }
    const ending = new DecisionError('shutting_down', 'over');
    const refused = call('a+1', { onStoreFailure: 'allow' });
    new Batch([refused]).fail(ending);
    expect(refused.outcome).toBe(ending);
  });

  it.each<[shows: 'ok' | 'bad' | 'none', results: readonly (number | DecisionError)[]]>([
    ['ok', [failed, 1]],
    ['bad', [ofKey, failed]],
    ['bad', [timedOut()]],
    ['none', [ofKey, poolEmpty()]],
  ])('shows its server as %s', (shows, results) => {
    const batch = new Batch(calls(...results.map((_, index) => `${'ab'[index]}+1`)));
    expect(batch.outcome).toBe('none');
    batch.settle(results);
    expect(batch.outcome).toBe(shows);
    const [error] = results;
    if (!(error instanceof DecisionError) || results.length > 1) return;
    batch.fail(error);
    expect(batch.outcome).toBe(shows);
  });
});

import type { ExplainedRequest } from '../../src/limiter/explained-request';
import { Code, type Verdict } from '../../src/limiter/verdict';
import { reasonOf, reasonOfAnswer } from '../../src/operators/explanation';
import { WorkerDecisions } from '../../src/operators/worker-decisions';
import type { CounterChange, ExplainedCounter } from '../../src/operators/answers';

describe('the reason of a descriptor', () => {
  function reasonOfLimit(counter: Partial<ExplainedCounter>, readBecause = ''): string {
    return reasonOf({
      outcome: 'limit',
      replacedBy: null,
      counter: { requestsPerUnit: 5, hits: 1, count: 2, countAfter: 3, ...counter } as ExplainedCounter,
      status: { code: 'OK', limitRemaining: 2, secondsUntilReset: 10 },
      isDenied: false,
      readBecause,
    });
  }

  it('has the count before and after the hits, and says why they are not counted', () => {
    expect(reasonOfLimit({})).toBe('the count would be 3 after 1 hit, within the limit of 5');
    expect(reasonOfLimit({ countAfter: 7, hits: 5 })).toBe('the count would be 7 after 5 hits, over the limit of 5');
    const reason = 'another limit is over and STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is set';
    expect(reasonOfLimit({ countAfter: 2 }, reason)).toBe(`the count would stay 2, because ${reason}`);
  });
});

describe('the reason of an answer', () => {
  const [LIMIT, QUOTA] = [{ quotaMode: false }, { quotaMode: true }];

  it.each([
    ['descriptor 1 is over its quota, but not every quota is used up', [QUOTA, QUOTA], [0], true],
    ['descriptor 1 is over its quota, but not every quota is used up', [QUOTA, QUOTA], [0], false],
    ['descriptor 1 is over its quota, which SHADOW_MODE allows', [QUOTA], [0], true],
    ['descriptor 2 is over its limit, which SHADOW_MODE allows', [QUOTA, LIMIT], [1], true],
    ['no descriptor is over its limit', [LIMIT], [], true],
  ])('of a request that passes is: %s', (reason, limits, over: readonly number[], shadowMode) => {
    const descriptors = limits.map((applied) => ({ resolution: { kind: 'limit', limited: { applied } } }));
    const request = { options: { shadowMode, quotaMode: false }, descriptors } as unknown as ExplainedRequest;
    const statuses = limits.map((_, index) => ({ code: over.includes(index) ? Code.OVER_LIMIT : Code.OK }));
    expect(reasonOfAnswer(request, { overallCode: Code.OK, statuses } as unknown as Verdict)).toBe(reason);
  });
});

describe('a request of operators to several workers', () => {
  const QUERY = { domain: 'shop', descriptor: { entries: [{ key: 'user', value: 'ann' }] } } as never;
  const CHANGE = { cacheKey: 'shop_user_ann_0', count: 3, countBefore: 7 } as CounterChange;
  const STATE = { cacheKey: 'shop_user_ann_0', count: 3, isInLocalCache: false };
  const NO_WORKER = { name: 'DecisionError', code: 'store_failed', message: 'no worker has answered' };

  /** A worker that answers every call with the same value, fails it, or does not answer: undefined. */
  class FakeWorker {
    readonly asked: string[] = [];
    readonly patience = new Set<number | undefined>();
    readonly forget = (cacheKey: string) => void this.asked.push(`told to forget ${cacheKey}`);

    constructor(
      readonly answer?: unknown,
      readonly isReady = true,
    ) {}

    call = async (method: string, _: unknown, patience?: number): Promise<readonly unknown[]> => {
      this.asked.push(method);
      this.patience.add(patience);
      if (this.answer instanceof Error) throw this.answer;
      return this.answer === undefined ? [] : [this.answer];
    };
  }

  function decisionsOf(...workers: readonly FakeWorker[]): WorkerDecisions {
    return new WorkerDecisions({ workers: () => workers, offendersSize: 10 });
  }

  const TOLD = `told to forget ${CHANGE.cacheKey}`;

  it('that one answers for all goes to the next one only when the first one ends before it has answered', async () => {
    const [ended, other] = [new FakeWorker(), new FakeWorker(CHANGE)];
    expect(await decisionsOf(ended, other).changeCounter(QUERY, 3)).toEqual(CHANGE);
    expect([ended.asked, other.asked]).toEqual(Array(2).fill(['change_counter', TOLD, 'forget']));
    await expect(decisionsOf(ended).explain({} as never)).rejects.toMatchObject(NO_WORKER);
    const [failed, unasked] = [new FakeWorker(new Error('the store is away')), new FakeWorker(CHANGE)];
    await expect(decisionsOf(failed, unasked).changeCounter(QUERY, 3)).rejects.toThrow('the store is away');
    expect(unasked.asked).toEqual([]);
  });

  const SUMMARY = { since: 0, floor: 0, offenders: [{ domain: 'shop', key: 'ann', limited: 7, error: 0 }] };
  const OFFENDERS = [expect.objectContaining({ domain: 'shop', limited: 7 })];

  it.each<readonly [string, number, unknown, (decisions: WorkerDecisions) => Promise<unknown>, unknown]>([
    ['the metrics of offenders', 250, SUMMARY, (decisions) => decisions.top({ limit: 5 }), OFFENDERS],
    ['the offenders', 5_000, SUMMARY, (decisions) => decisions.offenders({ limit: 5 }), OFFENDERS],
    ['a counter', 5_000, STATE, (decisions) => decisions.readCounter(QUERY), STATE],
    ['an explanation', 5_000, STATE, (decisions) => decisions.explain({} as never), STATE],
  ])('for %s leaves out one that stands still for %i ms', async (_, patience, answer, ask, expected) => {
    const [stopped, other] = [new FakeWorker(), new FakeWorker(answer)];
    expect(await ask(decisionsOf(stopped, other))).toEqual(expected);
    expect([...stopped.patience, ...other.patience]).toEqual([patience, patience]);
  });

  it('goes to those that are ready, while all that run forget a changed counter, now or when they continue', async () => {
    const [silent, ready] = [new FakeWorker(undefined, false), new FakeWorker(CHANGE)];
    expect(await decisionsOf(silent, ready).changeCounter(QUERY, 3)).toEqual(CHANGE);
    expect([silent.asked, ready.asked]).toEqual([[TOLD], ['change_counter', TOLD, 'forget']]);
    // A late change would change newer counts.
    expect([...ready.patience]).toEqual([undefined, 5_000]);
  });
});

import type { CounterChange } from '../../src/operators/answers';
import { WorkerDecisions } from '../../src/operators/worker-decisions';

describe('a request of operators to several workers', () => {
  const QUERY = { domain: 'shop', descriptor: { entries: [{ key: 'user', value: 'ann' }] } } as never;
  const CHANGE = { cacheKey: 'shop_user_ann_0', count: 3, countBefore: 7 } as CounterChange;
  const STATE = { cacheKey: 'shop_user_ann_0', count: 3, leased: null, isInLocalCache: false };
  const NO_WORKER = { name: 'DecisionError', code: 'store_failed', message: 'no worker has answered' };

  /** A worker that answers every call with the same value, fails it, or does not answer: undefined. */
  class FakeWorker {
    readonly isReady = true;
    readonly forget = (): void => undefined;

    constructor(readonly answer?: unknown) {}

    call = async (): Promise<readonly unknown[]> => {
      if (this.answer instanceof Error) throw this.answer;
      return this.answer === undefined ? [] : [this.answer];
    };
  }

  function decisionsOf(...workers: readonly FakeWorker[]): WorkerDecisions {
    return new WorkerDecisions({ workers: () => workers, offendersSize: 10 });
  }

  it('has the answer of one that answers, or the error of one that fails', async () => {
    const ended = new FakeWorker();
    expect(await decisionsOf(ended, new FakeWorker(CHANGE)).changeCounter(QUERY, 3)).toEqual(CHANGE);
    expect(await decisionsOf(ended, new FakeWorker(STATE)).readCounter(QUERY)).toEqual(STATE);
    await expect(decisionsOf(ended).explain({} as never)).rejects.toMatchObject(NO_WORKER);
    const failed = decisionsOf(new FakeWorker(new Error('the store is away')), new FakeWorker(CHANGE));
    await expect(failed.changeCounter(QUERY, 3)).rejects.toThrow('the store is away');
  });

  it('for offenders leaves out one that does not answer', async () => {
    const offenders = [{ domain: 'shop', key: 'ann', limited: 7, error: 0 }];
    const decisions = decisionsOf(new FakeWorker(), new FakeWorker({ since: 0, floor: 0, offenders }));
    expect([await decisions.summary(), await decisions.offenders()]).toMatchObject([{ offenders }, { offenders }]);
  });

  it('for the calls of a caller that is watched has the sums of all', async () => {
    const caller = { domain: 'shop', entries: [] };
    const counts = [
      { times: [100, 101], calls: [1, 2], denied: [1, 0] },
      { times: [101, 102], calls: [3, 4], denied: [0, 4] },
    ];
    const workers = [...counts.map((each) => new FakeWorker(each)), new FakeWorker()];
    const sums = { times: [100, 101, 102], calls: [1, 5, 4], denied: [1, 0, 4] };
    expect(await decisionsOf(...workers).watch(caller)).toEqual(sums);
    const none = { times: [], calls: [], denied: [] };
    expect(await decisionsOf(new FakeWorker(none)).watch(caller)).toEqual(none);
    expect(await decisionsOf(new FakeWorker(none), new FakeWorker(null)).watch(caller)).toBeNull();
  });
});

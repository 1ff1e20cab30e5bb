import type { CounterChange } from '../../src/operators/answers';
import { WorkerDecisions } from '../../src/operators/worker-decisions';

describe('a request of operators to several workers', () => {
  const QUERY = { domain: 'shop', descriptor: { entries: [{ key: 'user', value: 'ann' }] } } as never;
  const CHANGE = { cacheKey: 'shop_user_ann_0', count: 3, countBefore: 7 } as CounterChange;
  const STATE = { cacheKey: 'shop_user_ann_0', count: 3, leased: null, isInLocalCache: false };
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
    expect([ended.asked, other.asked]).toEqual(Array(2).fill(['release_counter', 'change_counter', TOLD, 'forget']));
    await expect(decisionsOf(ended).explain({} as never)).rejects.toMatchObject(NO_WORKER);
    const [failed, unasked] = [new FakeWorker(new Error('the store is away')), new FakeWorker(CHANGE)];
    await expect(decisionsOf(failed, unasked).changeCounter(QUERY, 3)).rejects.toThrow('the store is away');
    expect(unasked.asked).toEqual(['release_counter']);
  });

  const SUMMARY = { since: 0, floor: 0, offenders: [{ domain: 'shop', key: 'ann', limited: 7, error: 0 }] };
  const OFFENDERS = expect.objectContaining({ offenders: SUMMARY.offenders });

  it.each<readonly [string, number, unknown, (decisions: WorkerDecisions) => Promise<unknown>, unknown]>([
    ['the metrics of offenders', 250, SUMMARY, (decisions) => decisions.summary(), OFFENDERS],
    ['the offenders', 5_000, SUMMARY, (decisions) => decisions.offenders(), OFFENDERS],
    ['a counter', 5_000, STATE, (decisions) => decisions.readCounter(QUERY), STATE],
    ['an explanation', 5_000, STATE, (decisions) => decisions.explain({} as never), STATE],
  ])('for %s leaves out one that stands still for %i ms', async (_, patience, answer, ask, expected) => {
    const [stopped, other] = [new FakeWorker(), new FakeWorker(answer)];
    expect(await ask(decisionsOf(stopped, other))).toEqual(expected);
    expect([...stopped.patience, ...other.patience]).toEqual([patience, patience]);
  });

  it('for a counter has what all of them hold of it, and whether any has it as over its limit', async () => {
    const states = [{ leased: 4 }, { leased: 3, isInLocalCache: true }].map((state) => ({ ...STATE, ...state }));
    const workers = states.map((state) => new FakeWorker(state));
    const all = { ...STATE, leased: 7, isInLocalCache: true };
    expect(await decisionsOf(...workers).readCounter(QUERY)).toEqual(all);
  });

  it('goes to those that are ready, while all that run forget a changed counter, now or when they continue', async () => {
    const [silent, ready] = [new FakeWorker(undefined, false), new FakeWorker(CHANGE)];
    expect(await decisionsOf(silent, ready).changeCounter(QUERY, 3)).toEqual(CHANGE);
    expect([silent.asked, ready.asked]).toEqual([[TOLD], ['release_counter', 'change_counter', TOLD, 'forget']]);
    // A late change would change newer counts.
    expect([...ready.patience]).toEqual([5_000, undefined]);
  });
});

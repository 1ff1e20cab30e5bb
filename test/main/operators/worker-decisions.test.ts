import { Readable } from 'node:stream';
import { WorkerDecisions } from '../../../src/main/operators/worker-decisions';
import type { CounterChange } from '../../../src/streams/ports/operator';
import { ChannelClosedError, RequestError } from '../../../src/workers/channel/requests/request-error';

const QUERY = { domain: 'shop', descriptor: { entries: [{ key: 'user', value: 'ann' }] } } as never;
const CHANGE = { cacheKey: 'shop_user_ann_0', count: 3, countBefore: 7 } as CounterChange;

/** A worker that answers every request with the same value, or fails it. Records the methods. */
function worker(answer: unknown) {
  const asked: string[] = [];
  return {
    asked,
    ask(method: string) {
      asked.push(method);
      const stream = new Readable({ read: () => undefined });
      if (answer instanceof Error) return stream.destroy(answer);
      stream.push(JSON.stringify(answer));
      stream.push(null);
      return stream;
    },
  };
}

/** A worker that stands still: it never answers. Records the streams of the answers. */
function stoppedWorker() {
  const answers: Readable[] = [];
  return {
    answers,
    ask() {
      const stream = new Readable({ read: () => undefined });
      answers.push(stream);
      return stream;
    },
  };
}

function decisionsOf(...workers: readonly Pick<ReturnType<typeof worker>, 'ask'>[]): WorkerDecisions {
  return new WorkerDecisions({ workers: () => workers, offendersSize: 10 });
}

describe('a request that one worker answers for all', () => {
  it('goes to the next worker when the first one ends before it has answered', async () => {
    const [ended, other] = [worker(new ChannelClosedError()), worker(CHANGE)];

    expect(await decisionsOf(ended, other).changeCounter(QUERY, 3)).toEqual(CHANGE);
    expect([ended.asked, other.asked]).toEqual([
      ['change_counter', 'forget'],
      ['change_counter', 'forget'],
    ]);
  });

  it.each([
    ['none was there', []],
    ['the only one has ended', [worker(new ChannelClosedError())]],
  ])('fails as with a store when no worker is left: %s', async (_, workers) => {
    await expect(decisionsOf(...workers).explain({} as never)).rejects.toMatchObject({
      name: 'DecisionError',
      code: 'store_failed',
      message: 'no worker has answered',
    });
  });

  it('fails when the first worker cannot answer it, and asks no other one', async () => {
    const other = worker(CHANGE);
    const failed = worker(new RequestError('the store is away', { code: 'store_failed' }));

    await expect(decisionsOf(failed, other).changeCounter(QUERY, 3)).rejects.toMatchObject({
      code: 'store_failed',
      message: 'the store is away',
    });
    expect(other.asked).toEqual([]);
  });
});

describe('a request that all workers answer', () => {
  const STATE = { cacheKey: 'shop_user_ann_0', count: 3, isInLocalCache: false };
  const OFFENDER = { domain: 'shop', rule: 'shop.user', descriptor: 'user=ann', isShadow: false, limited: 7, error: 0 };
  const SUMMARY = { since: 0, floor: 0, offenders: [{ ...OFFENDER, key: 'ann' }] };

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it.each([
    ['the offenders on the page of metrics', 250, SUMMARY, (decisions: WorkerDecisions) => decisions.top({ limit: 5 })],
    ['the offenders', 5_000, SUMMARY, (decisions: WorkerDecisions) => decisions.offenders({ limit: 5 })],
    ['a counter', 5_000, STATE, (decisions: WorkerDecisions) => decisions.readCounter(QUERY)],
  ])('leaves out a worker that stands still, and cancels the request: %s', async (_, deadline, answer, request) => {
    const stopped = stoppedWorker();
    const result = request(decisionsOf(stopped, worker(answer)));
    await jest.advanceTimersByTimeAsync(deadline - 1);
    expect(stopped.answers.map(({ destroyed }) => destroyed)).toEqual([false]);

    await jest.advanceTimersByTimeAsync(1);
    expect(stopped.answers.map(({ destroyed }) => destroyed)).toEqual([true]);
    expect(await result).toEqual(answer === STATE ? STATE : [expect.objectContaining(OFFENDER)]);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('does not keep a changed counter waiting for a worker that stands still and should forget it', async () => {
    const stopped = stoppedWorker();
    const result = decisionsOf(worker(CHANGE), stopped).changeCounter(QUERY, 3);
    await jest.advanceTimersByTimeAsync(5_000);

    expect(stopped.answers.map(({ destroyed }) => destroyed)).toEqual([true]);
    expect(await result).toEqual(CHANGE);
  });

  it('asks the next worker for an explanation when the first one stands still', async () => {
    const stopped = stoppedWorker();
    const result = decisionsOf(stopped, worker(STATE)).explain({} as never);
    await jest.advanceTimersByTimeAsync(5_000);

    expect(stopped.answers.map(({ destroyed }) => destroyed)).toEqual([true]);
    expect(await result).toEqual(STATE);
  });

  it('fails as with a store when all workers stand still', async () => {
    const result = decisionsOf(stoppedWorker(), stoppedWorker()).readCounter(QUERY);
    const advanced = jest.advanceTimersByTimeAsync(5_000);

    await expect(result).rejects.toMatchObject({ code: 'store_failed', message: 'no worker has answered' });
    await advanced;
  });
});

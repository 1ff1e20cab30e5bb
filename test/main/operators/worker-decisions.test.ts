import { Readable } from 'node:stream';
import { NEVER, type Observable, Subject } from 'rxjs';
import type { AskedWorker } from '../../../src/main/operators/ask-worker';
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

/** A worker that never answers by itself, and stands still unless it gives signs of life. Records the streams of the answers. */
function silentWorker(alive$: Observable<unknown> = NEVER) {
  const answers: Readable[] = [];
  return {
    answers,
    alive$,
    ask() {
      const stream = new Readable({ read: () => undefined });
      answers.push(stream);
      return stream;
    },
  };
}

interface FakeWorker extends Pick<ReturnType<typeof worker>, 'ask'> {
  readonly alive$?: Observable<unknown>;
  readonly isReady?: boolean;
}

function decisionsOf(...workers: readonly FakeWorker[]): WorkerDecisions {
  const asked = workers.map(({ alive$ = NEVER, isReady = true, ...requests }): AskedWorker => ({
    requests,
    alive$,
    isReady,
  }));
  return new WorkerDecisions({ workers: () => asked, offendersSize: 10 });
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
    const stopped = silentWorker();
    const result = request(decisionsOf(stopped, worker(answer)));
    await jest.advanceTimersByTimeAsync(deadline - 1);
    expect(stopped.answers.map(({ destroyed }) => destroyed)).toEqual([false]);

    await jest.advanceTimersByTimeAsync(1);
    expect(stopped.answers.map(({ destroyed }) => destroyed)).toEqual([true]);
    expect(await result).toEqual(answer === STATE ? STATE : [expect.objectContaining(OFFENDER)]);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('does not keep a changed counter waiting for a worker that stands still and should forget it', async () => {
    const stopped = silentWorker();
    const result = decisionsOf(worker(CHANGE), stopped).changeCounter(QUERY, 3);
    await jest.advanceTimersByTimeAsync(5_000);

    expect(stopped.answers.map(({ destroyed }) => destroyed)).toEqual([true]);
    expect(await result).toEqual(CHANGE);
  });

  it('asks the next worker for an explanation when the first one stands still', async () => {
    const stopped = silentWorker();
    const result = decisionsOf(stopped, worker(STATE)).explain({} as never);
    await jest.advanceTimersByTimeAsync(5_000);

    expect(stopped.answers.map(({ destroyed }) => destroyed)).toEqual([true]);
    expect(await result).toEqual(STATE);
  });

  it('fails as with a store when all workers stand still', async () => {
    const result = decisionsOf(silentWorker(), silentWorker()).readCounter(QUERY);
    const advanced = jest.advanceTimersByTimeAsync(5_000);

    await expect(result).rejects.toMatchObject({ code: 'store_failed', message: 'no worker has answered' });
    await advanced;
  });

  it.each([
    ['an explanation', (decisions: WorkerDecisions) => decisions.explain({} as never)],
    ['a counter', (decisions: WorkerDecisions) => decisions.readCounter(QUERY)],
  ])('waits for a worker that is alive and waits for its store: %s', async (_, request) => {
    const alive$ = new Subject<void>();
    const waiting = silentWorker(alive$);
    const result = request(decisionsOf(waiting));
    for (let second = 0; second < 30; second += 1) {
      await jest.advanceTimersByTimeAsync(1_000);
      alive$.next();
    }
    waiting.answers[0]?.push(JSON.stringify(STATE));
    waiting.answers[0]?.push(null);

    expect(await result).toEqual(STATE);
    expect(alive$.observed).toBe(false);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('leaves out a worker that stands still after signs of life', async () => {
    const alive$ = new Subject<void>();
    const stopped = silentWorker(alive$);
    const result = decisionsOf(stopped, worker(STATE)).explain({} as never);
    await jest.advanceTimersByTimeAsync(3_000);
    alive$.next();
    await jest.advanceTimersByTimeAsync(4_999);
    expect(stopped.answers.map(({ destroyed }) => destroyed)).toEqual([false]);

    await jest.advanceTimersByTimeAsync(1);
    expect(await result).toEqual(STATE);
  });

  it('goes to the workers that are ready, while all that run forget a changed counter', async () => {
    const silent = { ...worker(new Error('not awaited')), isReady: false };
    const ready = worker(CHANGE);
    const decisions = decisionsOf(silent, ready);

    expect(await decisions.changeCounter(QUERY, 3)).toEqual(CHANGE);
    expect([silent.asked, ready.asked]).toEqual([['forget'], ['change_counter', 'forget']]);
    await decisions.explain({} as never);
    expect(silent.asked).toEqual(['forget']);
  });

  it('does not wait until a worker that is not ready has forgotten a changed counter, and cancels the request in the end', async () => {
    const silent = { ...silentWorker(), isReady: false };

    expect(await decisionsOf(silent, worker(CHANGE)).changeCounter(QUERY, 3)).toEqual(CHANGE);
    expect(silent.answers.map(({ destroyed }) => destroyed)).toEqual([false]);
    await jest.advanceTimersByTimeAsync(5_000);
    expect(silent.answers.map(({ destroyed }) => destroyed)).toEqual([true]);
    expect(jest.getTimerCount()).toBe(0);
  });
});

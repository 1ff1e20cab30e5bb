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

function decisionsOf(...workers: readonly ReturnType<typeof worker>[]): WorkerDecisions {
  return new WorkerDecisions({ workers: () => workers, offendersSize: 0 });
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
      message: 'no worker is ready',
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

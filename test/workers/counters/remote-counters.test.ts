import { VirtualTimeScheduler, firstValueFrom } from 'rxjs';
import fc from 'fast-check';
import type { CounterOperation } from '../../../src/limiter/counter-operation';
import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import { RemoteCounters } from '../../../src/workers/counters/remote-counters';
import { serveCounters } from '../../../src/workers/counters/serve-counters';
import { LaneClient } from '../../support/clients/lane-client';
import { until } from '../../support/waiting/until';
import { channelPair } from '../../support/workers/channel-pair';

const NOW = 1_700_000_000_000;

function operation(key: string, hits = 1): CounterOperation {
  return { key, hits, windowSeconds: 60, guard: undefined, limit: 0 };
}

const opened: RemoteCounters[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((counters) => counters.close()));
});

/** Counters in memory, and several workers that count in them. */
function instanceOf(workers: number, maxKeys = 10_000) {
  const memory = new MemoryCounters({ maxKeys, now: () => NOW });
  const pairs = Array.from({ length: workers }, () => {
    const pair = channelPair();
    serveCounters(pair.primary, memory);
    const counters = new RemoteCounters({ channel: pair.worker, windowSpan: 0 });
    opened.push(counters);
    return { ...pair, counters };
  });
  return { memory, pairs };
}

describe('counters in the memory of the primary', () => {
  it('let exactly as many calls of all workers pass as the limit', async () => {
    const { memory, pairs } = instanceOf(4);
    const clients = pairs.map(({ counters }) => new LaneClient(counters));
    const calls = Array.from({ length: 4000 }, (_, call) => clients[call % 4]!.call([operation('k')]));
    const counts = (await Promise.all(calls)).map(([count]) => count as number);
    expect(counts.filter((count) => count <= 1000)).toHaveLength(1000);
    expect([...counts].sort((one, other) => one - other)).toEqual(
      Array.from({ length: 4000 }, (_, index) => index + 1),
    );
    for (const client of clients) client[Symbol.dispose]();
    await memory.close();
  });

  it('give every call of a worker the counts that it would get in one process', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.array(fc.tuple(fc.constantFrom('a', 'b', 'é'), fc.integer({ min: -3, max: 5 })), { minLength: 1 }),
          {
            minLength: 1,
          },
        ),
        async (batches) => {
          const { memory, pairs } = instanceOf(1);
          const alone = new MemoryCounters({ maxKeys: 10_000, now: () => NOW });
          function apply(counters: MemoryCounters | RemoteCounters): Promise<unknown> {
            return Promise.all(
              batches.map((batch) => firstValueFrom(counters.apply(batch.map(([key, hits]) => operation(key, hits))))),
            );
          }
          expect(await apply(pairs[0]!.counters)).toEqual(await apply(alone));
          await Promise.all([memory.close(), alone.close()]);
        },
      ),
    );
  });

  it('keep what a worker that has ended had counted, and limit the keys of all workers together', async () => {
    const { memory, pairs } = instanceOf(2, 10);
    const [first, second] = pairs.map(({ counters }) => counters) as [RemoteCounters, RemoteCounters];
    await firstValueFrom(first.apply([operation('k', 7)]));
    pairs[0]!.worker.close();
    expect(await firstValueFrom(second.apply([operation('k', 1)]))).toEqual([8]);
    await firstValueFrom(second.apply(Array.from({ length: 20 }, (_, index) => operation(`other_${index}`))));
    expect(memory.size).toBe(10);
    await memory.close();
  });

  it('fail what is in flight, and further batches, when the primary has ended', async () => {
    const { memory, pairs } = instanceOf(1);
    const { counters, primary } = pairs[0]!;
    const inFlight = firstValueFrom(counters.apply([operation('k')]));
    primary.close();
    const failure = { name: 'DecisionError', code: 'store_failed' };
    await expect(inFlight).rejects.toMatchObject(failure);
    await expect(firstValueFrom(counters.apply([operation('k')]))).rejects.toMatchObject(failure);
    await counters.close();
    await memory.close();
  });

  it('fail when the primary does not answer, and count again when it does', async () => {
    const scheduler = new VirtualTimeScheduler(undefined, 20_000);
    const memory = new MemoryCounters({ maxKeys: 10, now: () => NOW });
    const { primary, worker } = channelPair();
    const counters = new RemoteCounters({ channel: worker, windowSpan: 0, scheduler });
    const connected: boolean[] = [];
    counters.connected$.subscribe((isConnected) => connected.push(isConnected));
    const lost = firstValueFrom(counters.apply([operation('k')])).catch((error: unknown) => error);
    scheduler.flush();
    expect(await lost).toMatchObject({ code: 'store_timeout' });
    expect(connected).toEqual([true, false]);
    await expect(firstValueFrom(counters.apply([operation('k')]))).rejects.toMatchObject({ code: 'store_timeout' });

    serveCounters(primary, memory);
    await until('the answer to the first batch', () => {
      scheduler.maxFrames += 1_000;
      scheduler.flush();
      return connected.length === 3;
    });
    expect(connected).toEqual([true, false, true]);
    expect(memory.size).toBe(1);
    // That of the lost batch, of which its call does not know whether it was counted.
    await expect(firstValueFrom(counters.apply([operation('k')]))).resolves.toEqual([2]);
    await counters.close();
    await memory.close();
  });

  it('are closed when the batches in flight are answered', async () => {
    const { memory, pairs } = instanceOf(1);
    const { counters } = pairs[0]!;
    let answered = false;
    void firstValueFrom(counters.apply([operation('k')])).then(() => (answered = true));
    await counters.close();
    await Promise.resolve();
    expect(answered).toBe(true);
    await memory.close();
  });
});

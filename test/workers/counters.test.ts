import fc from 'fast-check';
import { VirtualTimeScheduler, firstValueFrom } from 'rxjs';
import type { CounterOperation, Guard } from '../../src/limiter/counter-operation';
import { MemoryCounters } from '../../src/sinks/counters/memory/memory-counters';
import { LONGEST_TABLE_KEY } from '../../src/text/table-key';
import { RemoteCounters } from '../../src/workers/counters/remote-counters';
import { serveCounters } from '../../src/workers/counters/serve-counters';
import { until } from '../support/waiting/until';
import { channelPair } from '../support/workers/channel-pair';

const NOW = 1_700_000_000_000;

function operation(key: string, hits = 1, guard?: Guard): CounterOperation {
  return { key, hits, windowSeconds: 60, guard, limit: 3 };
}

const opened: RemoteCounters[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((counters) => counters.close()));
});

/** Counters in memory, and a worker that counts in them. */
function inOneProcess() {
  const memory = new MemoryCounters({ maxKeys: 10_000, now: () => NOW });
  const { primary, worker } = channelPair();
  serveCounters(primary, memory);
  const counters = new RemoteCounters({ channel: worker, windowSpan: 0 });
  opened.push(counters);
  return { memory, primary, counters };
}

function countsOf(counters: RemoteCounters | MemoryCounters, batch: readonly CounterOperation[]) {
  return firstValueFrom(counters.apply(batch));
}

/** The operations of a call, in one guard or in none. */
function callOf(isGuarded: boolean, operations: readonly (readonly [key: string, hits: number])[]) {
  const guard = isGuarded ? { operations: operations.length } : undefined;
  return operations.map(([key, hits]) => operation(key, hits, guard));
}

describe('counters in the memory of the primary', () => {
  it('give a worker the counts that it would get in one process, for calls of any size with and without guards', async () => {
    const unit = fc.nat(0xffff).map((code) => String.fromCharCode(code));
    // With lone surrogates.
    const key = fc.oneof(fc.constantFrom('a', 'b', 'é'), fc.string({ unit, minLength: 1, maxLength: 300 }));
    const operations = fc.array(fc.tuple(key, fc.integer({ min: -3, max: 5 })), { minLength: 1, maxLength: 5 });
    const call = fc.tuple(fc.boolean(), operations).map((args) => callOf(...args));
    const batches = fc.array(
      fc.array(call, { minLength: 1, maxLength: 10 }).map((calls) => calls.flat()),
      { minLength: 1 },
    );
    const longest = Array.from({ length: 1000 }, (_, index) => [`${index}`.padEnd(LONGEST_TABLE_KEY, 'é'), 1] as const);
    const large = [callOf(false, longest.slice(0, 950)).concat(callOf(true, longest))];
    await fc.assert(
      fc.asyncProperty(batches, async (given) => {
        const { memory, counters } = inOneProcess();
        const alone = new MemoryCounters({ maxKeys: 10_000, now: () => NOW });
        const expected = await Promise.all(given.map((batch) => countsOf(alone, batch)));
        expect(await Promise.all(given.map((batch) => countsOf(counters, batch)))).toEqual(expected);
        await Promise.all([memory.close(), alone.close()]);
      }),
      { numRuns: 50, examples: [[large]] },
    );
  });

  it('are closed when what is in flight is answered, and fail when the primary has ended', async () => {
    const { memory, primary, counters } = inOneProcess();
    let isAnswered = false;
    void countsOf(counters, [operation('k')]).then(() => (isAnswered = true));
    await counters.close();
    await Promise.resolve();
    expect(isAnswered).toBe(true);
    const inFlight = countsOf(counters, [operation('k')]);
    primary.close();
    const failure = { name: 'DecisionError', code: 'store_failed' };
    await expect(inFlight).rejects.toMatchObject(failure);
    await expect(countsOf(counters, [operation('k')])).rejects.toMatchObject(failure);
    await memory.close();
  });

  it('fail when the primary does not answer, and count again when it does', async () => {
    const scheduler = new VirtualTimeScheduler(undefined, 20_000);
    const memory = new MemoryCounters({ maxKeys: 10, now: () => NOW });
    const { primary, worker } = channelPair();
    const counters = new RemoteCounters({ channel: worker, windowSpan: 0, scheduler });
    const connected: boolean[] = [];
    counters.connected$.subscribe((isConnected) => connected.push(isConnected));
    const lost = countsOf(counters, [operation('k')]).catch((error: unknown) => error);
    scheduler.flush();
    expect(await lost).toMatchObject({ code: 'store_timeout' });
    expect(connected).toEqual([true, false]);
    await expect(countsOf(counters, [operation('k')])).rejects.toMatchObject({ code: 'store_timeout' });

    serveCounters(primary, memory);
    await until('the answer to the first batch', () => {
      scheduler.maxFrames += 1_000;
      scheduler.flush();
      return connected.length === 3;
    });
    expect([connected, memory.size]).toEqual([[true, false, true], 1]);
    // That of the lost batch, of which its call does not know whether it was counted.
    expect(await countsOf(counters, [operation('k')])).toEqual([2]);
    await counters.close();
    await memory.close();
  });
});

import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { NEVER, type Observable, firstValueFrom, lastValueFrom } from 'rxjs';
import type { CounterOperation } from '../../src/limiter/counter-operation';
import { rowsOfRuleset } from '../../src/rules/rows/rows-of-ruleset';
import { type Ruleset, buildRuleset } from '../../src/rules/ruleset';
import { MemoryCounters } from '../../src/sinks/counters/memory/memory-counters';
import { EvenSamples } from '../../src/statistics/even-samples';
import { Statistics } from '../../src/statistics/statistics';
import { LONGEST_TABLE_KEY } from '../../src/text/table-key';
import { answerRequests } from '../../src/workers/channel/requests/answering';
import { ChannelClosedError, RequestError } from '../../src/workers/channel/requests/request-error';
import { Requests } from '../../src/workers/channel/requests/requests';
import { StreamChannel } from '../../src/workers/channel/stream-channel';
import { TOPICS } from '../../src/workers/channel/topics';
import { RemoteCounters } from '../../src/workers/counters/remote-counters';
import { serveCounters } from '../../src/workers/counters/serve-counters';
import { ChannelMember } from '../../src/workers/primary/rules/channel-member';
import { DurationSender } from '../../src/workers/statistics/duration-sender';
import { MergedStatistics } from '../../src/workers/statistics/merged-statistics';
import { readValues } from '../../src/workers/statistics/statistics-frames';
import { StatisticsReporter } from '../../src/workers/statistics/statistics-reporter';
import { RequestGate } from '../../src/workers/worker/rules/request-gate';
import { RuleReceiver } from '../../src/workers/worker/rules/rule-receiver';
import { arbitraryDomains } from '../support/data/arbitrary-rules';
import { until } from '../support/waiting/until';
import { channelPair, duplexPair } from '../support/workers/channel-pair';

const MIB = 1024 * 1024;

function inPieces(size: number) {
  return (bytes: Buffer): readonly Buffer[] =>
    Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

describe('a channel', () => {
  it('closes, completes its topics, and then does nothing when what arrives is no message', async () => {
    const [stream, other] = duplexPair();
    const channel = new StreamChannel(stream);
    let isCompleted = false;
    channel.frames(TOPICS.rules).subscribe({ complete: () => (isCompleted = true) });
    channel.start();
    other.write('\xff'.repeat(100));
    await firstValueFrom(channel.closed$);
    expect(isCompleted).toBe(true);
    channel.send(TOPICS.control, 'x');
  });

  it('is congested while the other end does not read, and closes rather than keep any amount for it', async () => {
    const [stream, other] = duplexPair();
    const channel = new StreamChannel(stream);
    let [drained, isClosed] = [0, false];
    channel.drained$.subscribe(() => (drained += 1));
    channel.closed$.subscribe(() => (isClosed = true));
    channel.send(TOPICS.requests, Buffer.alloc(MIB - 10));
    expect(channel.isCongested).toBe(false);
    channel.send(TOPICS.requests, Buffer.alloc(1));
    expect([channel.isCongested, drained]).toEqual([true, 0]);
    other.resume();
    await until('everything is accepted', () => drained === 1);
    other.pause();
    for (let count = 0; count < 65; count += 1) {
      expect(isClosed).toBe(false);
      channel.send(TOPICS.rules, Buffer.alloc(MIB - 5));
    }
    expect(isClosed).toBe(true);
  });
});

test('requests over a channel are answered in chunks as they are read, fail with their error, and end with the channel', async () => {
  const { primary, worker } = channelPair({ cut: inPieces(99_991) });
  let [sent, isEnded] = [0, false];
  answerRequests(worker, {
    async *echo(parameters) {
      yield JSON.stringify(parameters);
    },
    async *endless() {
      try {
        for (; ; sent += 1) yield Buffer.alloc(64 * 1024);
      } finally {
        isEnded = true;
      }
    },
    // oxlint-disable-next-line require-yield -- it fails before its first chunk
    async *fail() {
      throw new RequestError('not now', { status: 503 });
    },
  });
  const requests = new Requests(primary);
  const long = 'ü'.repeat(3 * MIB);
  expect((await text(requests.ask('echo', { long }))) === JSON.stringify({ long })).toBe(true);
  await expect(text(requests.ask('fail'))).rejects.toMatchObject({ message: 'not now', detail: { status: 503 } });
  const endless = requests.ask('endless');
  await until('the credit is used up', () => sent === 8);
  endless.resume();
  await until('more is sent', () => sent > 30);
  const cut = text(requests.ask('endless'));
  endless.destroy();
  await until('it is cancelled', () => isEnded);
  primary.close();
  await expect(cut).rejects.toBeInstanceOf(ChannelClosedError);
});

describe('counters in the memory of the primary', () => {
  /** The counts of batches, applied to counters at once. */
  function countsOf(counters: RemoteCounters | MemoryCounters, batches: readonly (readonly CounterOperation[])[]) {
    return Promise.all(batches.map((batch) => firstValueFrom(counters.apply(batch))));
  }

  it('give a worker the counts that it would get in one process, for calls of any size, and fail when the primary ends', async () => {
    const keys = Array.from({ length: 1000 }, (_, index) => `${index}`.padEnd(LONGEST_TABLE_KEY, 'é'));
    const plain = { hits: 1, windowSeconds: 60, guard: undefined, limit: 3 };
    const guard = { operations: keys.length };
    const guarded = keys.map((key) => ({ ...plain, key, guard }));
    const large = [...keys.slice(0, 950).map((key) => ({ ...plain, key })), ...guarded];
    // The lone surrogate would become another key in UTF-8.
    const small = ['\ud800', '\ud801', '\ud800'].map((key, hits) => ({ ...plain, key, hits }));
    const batches = [large, small, large, small, large];
    const [memory, alone] = [1, 2].map(() => new MemoryCounters({ maxKeys: 10_000, now: () => 0 }));
    const { primary, worker } = channelPair();
    serveCounters(primary, memory!);
    const counters = new RemoteCounters({ channel: worker, windowSpan: 0 });
    expect(await countsOf(counters, batches)).toEqual(await countsOf(alone!, batches));
    const inFlight = countsOf(counters, [small]);
    primary.close();
    const failure = { name: 'DecisionError', code: 'store_failed' };
    await expect(inFlight).rejects.toMatchObject(failure);
    await expect(countsOf(counters, [small])).rejects.toMatchObject(failure);
    await Promise.all([counters, memory!, alone!].map((each) => each.close()));
  });
});

describe('rules that are transferred to a worker', () => {
  function connected() {
    const { primary, worker } = channelPair();
    const rulesets: (Ruleset | undefined)[] = [];
    new RuleReceiver(worker, new RequestGate()).events$.subscribe((event) =>
      rulesets.push(event.kind === 'loaded' ? event.ruleset : undefined),
    );
    const member = new ChannelMember(primary, { gone$: NEVER, kill: () => undefined });
    return { member, rulesets };
  }

  function run(step: Observable<unknown>): Promise<unknown> {
    return lastValueFrom(step, { defaultValue: undefined });
  }

  /** The rows of a ruleset, with texts instead of arrays: comparing large arrays element by element takes seconds. */
  function rowsOf(ruleset: Ruleset): unknown {
    const json = JSON.stringify([...rowsOfRuleset(ruleset)], (_, value: unknown) =>
      value instanceof Int32Array ? value.join() : value,
    );
    return JSON.parse(json);
  }

  it('are the same, with the places in their files, and used when they are committed, and not before', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryDomains, async (configs) => {
        const { member, rulesets } = connected();
        const ruleset = buildRuleset(configs, ({ value }) =>
          value.length === 2 ? undefined : { file: `${value.length % 2}.yaml`, line: value.length, column: 3 },
        );
        await run(member.prepare(ruleset));
        expect(rulesets).toEqual([]);
        await run(member.commit());
        expect(rulesets.map((each) => each && rowsOf(each))).toEqual([rowsOf(ruleset)]);
      }),
      { numRuns: 20 },
    );
  });
});

describe('the merged statistics of workers', () => {
  /** In milliseconds: longer than any test. */
  const NO_DEADLINE = 600_000;
  const TIMER = 'ratelimit_server.ShouldRateLimit.response_time';

  type Step = (statistics: Statistics) => void;

  // Some are escaped; two of them to the same name.
  const key = fc.constantFrom('d.a', 'd.10.0.0.1', 'd.x:y', 'd.x|y', 'd.é', 'd.\n', `d.${'long'.repeat(100)}`);
  const duration = fc.double({ min: 0, max: 20_000, noNaN: true });

  /** What a worker counts; undefined: the primary collects. */
  const step: fc.Arbitrary<Step | undefined> = fc.oneof(
    fc.tuple(fc.boolean(), key, fc.nat(100)).map(([isRuntime, name, hits]): Step => (statistics) => {
      statistics.counter('c.__code=x').add(hits);
      statistics.runtimeCounter(`${name}.none`, 'other.none').add(1);
      const rule = isRuntime ? statistics.runtimeRule(name, 'd.rest') : statistics.rule(name);
      rule.totalHits += hits;
    }),
    fc.tuple(duration, fc.constantFrom(1, 600, 2_000)).map(([milliseconds, times]): Step => (statistics) => {
      for (let time = 0; time < times; time += 1) statistics.timer(TIMER).record(milliseconds);
    }),
    fc.constant(undefined),
  );

  /** All values that are not 0, without those about the registry itself. */
  function valuesOf(statistics: Statistics): Readonly<Record<string, number>> {
    const own = /ratelimit\.(statistics|workers)\./;
    return Object.fromEntries([...statistics.entries()].filter(([name, value]) => value !== 0 && !own.test(name)));
  }

  /** A registry with the statistics of several workers in it. */
  function instanceOf(workers: readonly Statistics[], maxKeys: number, cut = inPieces(MIB)) {
    const statistics = new Statistics(maxKeys);
    const merged = new MergedStatistics(statistics);
    function add(worker: Statistics) {
      const pair = channelPair({ cut });
      merged.add(pair.primary);
      return { reporter: new StatisticsReporter(worker, pair.worker), end: () => pair.worker.close() };
    }
    const ends = workers.map(add);
    return { statistics, merged, ends, collect: () => merged.collect(NO_DEADLINE) };
  }

  it('are those of a single registry, with every duration, however the work is split and the bytes are cut', async () => {
    const steps = fc.array(fc.tuple(fc.nat(2), step), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 10, max: 5000 }), async (taken, size) => {
        const single = new Statistics(1000);
        const workers = Array.from({ length: 3 }, () => new Statistics(1000));
        const { statistics, collect, ends } = instanceOf(workers, 1000, inPieces(size));
        const samples = [single, statistics].map((registry) => {
          const kept = new EvenSamples(100_000);
          registry.timer(TIMER).addRecorder(kept);
          return kept;
        });
        for (const [worker, count] of taken) {
          if (count === undefined) await collect();
          for (const registry of [single, workers[worker]!]) count?.(registry);
        }
        await collect();
        expect(valuesOf(statistics)).toEqual(valuesOf(single));
        for (const registry of [single, statistics]) registry.timer(TIMER).flush();
        const [ofSingle, ofInstance] = samples.map((kept) => [...kept.take().values].sort((one, other) => one - other));
        expect(ofInstance).toEqual(ofSingle);
        for (const { end } of ends) end();
      }),
      { numRuns: 25 },
    );
  });

  it('keep the counts of a worker that has ended, drop its gauges, and show the size of the largest windows', async () => {
    // The counts of a local cache are a counter of its worker.
    const names = ['connections', 'ratelimit.localcache.lookupCount', 'ratelimit.pipeline.window_size', 'calls'];
    const workers = [
      [5, 100, 7, 3],
      [6, 101, 8, 4],
    ].map((values) => {
      const own = new Statistics(10);
      names.slice(0, 3).forEach((name, index) => own.gauge(name, () => values[index]!));
      own.counter('calls').add(values[3]!);
      return own;
    });
    const { statistics, ends, collect } = instanceOf(workers, 10);
    await collect();
    expect(names.map((name) => valuesOf(statistics)[name])).toEqual([11, 201, 8, 7]);
    ends[1]?.end();
    await collect();
    expect(names.map((name) => valuesOf(statistics)[name])).toEqual([5, 201, 7, 7]);
    ends[0]?.end();
  });

  it('have at most the maximum number of runtime keys, and every hit', async () => {
    const workers = [0, 1, 2].map(() => new Statistics(50));
    const { statistics, collect, ends } = instanceOf(workers, 50);
    for (let round = 0; round < 10; round += 1) {
      for (const [index, worker] of workers.entries()) {
        for (let value = 0; value < 30; value += 1) {
          worker.runtimeRule(`d.user_${index % 2}_${round * 10 + value}`, 'd.user').totalHits += 1;
        }
      }
      await collect();
    }
    const values = new Map(statistics.entries());
    const hits = [...values].filter(([name]) => name.endsWith('total_hits'));
    expect(values.get('ratelimit.statistics.runtime_keys')).toBe(50);
    expect(hits.filter(([name]) => /user_\d/.test(name))).toHaveLength(50);
    expect(hits.reduce((sum, [, value]) => sum + value, 0)).toBe(900);
    for (const { end } of ends) end();
  });

  it('have rules with keys of any length, and more of them than may wait for the channel at once', async () => {
    const worker = new Statistics(70);
    const { statistics, collect, ends } = instanceOf([worker], 70);
    for (let number = 0; number < 70; number += 1) worker.rule(`d.${number}.${'k'.repeat(MIB)}`).totalHits += 2;
    worker.runtimeRule('d.é', 'é'.repeat(MIB)).totalHits += 3;
    await ends[0]?.reporter.report();
    await collect();
    // The names themselves would make the message of a failure unreadable.
    const values = valuesOf(statistics);
    const isSame = Object.entries(valuesOf(worker)).every(([name, value]) => values[name] === value);
    expect([isSame, statistics.rules.length]).toEqual([true, 71]);
    ends[0]?.end();
  });

  it('do not wait for a worker that does not answer', async () => {
    const worker = new Statistics(10);
    const { statistics, merged, ends } = instanceOf([worker], 10);
    merged.add(channelPair().primary);
    worker.counter('calls').add(1);
    await merged.collect();
    await until('the other has reported', () => 'calls' in valuesOf(statistics));
    expect(valuesOf(statistics)['calls']).toBe(1);
    ends[0]?.end();
  });

  it('lack the durations that the primary does not read, beyond a number that is kept; they are counted', () => {
    const sent: Buffer[] = [];
    const channel = {
      send: (_: unknown, body: Uint8Array | string) => sent.push(Buffer.from(body as Uint8Array)),
      ...{ frames: () => NEVER, closed$: NEVER, drained$: NEVER, isCongested: true },
    };
    const dropped = new Statistics(0).counter('dropped');
    const sender = new DurationSender(channel, 3, dropped);
    for (let number = 1; number <= 66; number += 1) sender.add(Float64Array.of(number), 1);
    channel.isCongested = false;
    sender.sendHeld();
    expect([sent.flatMap((body) => [...readValues(body)]).at(-1), sent.length, dropped.value]).toEqual([64, 64, 2]);
  });
});

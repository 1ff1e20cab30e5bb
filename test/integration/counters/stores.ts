import { firstValueFrom } from 'rxjs';
import { LARGEST_COUNT } from '../../../src/counting/operation';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/deployment';
import { kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { plaincacheCounters } from '../../../src/sinks/counters/plaincache/plaincache-counters';
import type { CounterAdministration } from '../../../src/streams/ports/counter-administration';
import type { Counters } from '../../../src/streams/ports/counters';
import type { MemcachedProcess } from '../../support/processes/memcached-process';
import { instance, options } from '../kvstore/options';
import { plaincacheTestOptions } from '../plaincache/options';
import { until } from '../../support/waiting/until';
import { largeLimits, postpaidLimits, severalLimits } from './rule-scenarios';
import { type StoreTraits, apply, clock, countingScenarios, operation } from './scenarios';
import { counterOf, stopWhenOver, type OperationParts } from '../../support/data/operations';
import type { Counted } from '../../../src/counting/operation';

type AdministeredCounters = Counters & CounterAdministration;

let keys = 0;

/** A counter that no other scenario uses. Half of them are in the store of per-second limits, if there is one. */
function freshCounter(seconds = 60): Counted {
  keys += 1;
  return counterOf(`administered_${keys}`, seconds);
}

function hit({ key, limit: { lengthSeconds, endsAt } }: Counted, hits: number, more: OperationParts = {}) {
  return operation(key, hits, { lengthSeconds, endsAt, ...more });
}

interface Traits extends StoreTraits {
  /**
   * Whether the lifetime of a key is at least the length of its window; in memory, it ends with the window. Default
   * true.
   */
  readonly livesForWindow?: boolean;
}

/** The administration that all counter stores have in common. @param store called when a scenario begins */
function administrationScenarios(store: () => AdministeredCounters, { livesForWindow = true }: Traits): void {
  /** Checks that a key lives about as long as its window: nothing that depends on how fast the test runs. */
  function expectLifetime(timeToLive: number | null, lengthSeconds: number): void {
    expect(timeToLive).not.toBeNull();
    expect(timeToLive).toBeGreaterThan(livesForWindow ? lengthSeconds / 2 : 0);
    expect(timeToLive).toBeLessThanOrEqual(lengthSeconds + 2);
  }

  const NONE = { count: 0, timeToLive: null };

  it.each([3600, 1])('reads a counter of %d seconds without changing it', async (lengthSeconds) => {
    const counter = freshCounter(lengthSeconds);
    for (let read = 0; read < 2; read += 1) expect(await store().readCounter(counter)).toEqual(NONE);
    await apply(store(), hit(counter, 4));
    const { count, timeToLive } = await store().readCounter(counter);
    // A counter of a second may be gone.
    expect(lengthSeconds === 1 ? [4, 0] : [4]).toContain(count);
    if (lengthSeconds > 1) expectLifetime(timeToLive, lengthSeconds);
  });

  it('keeps a counter of a window of the calendar until its end, and what is counted after the end only briefly', async () => {
    const end = Math.floor(Date.now() / 1000) + 5_000;
    const [counter, late] = [freshCounter(end), freshCounter(end - 5_001)];
    const guarded = { group: stopWhenOver(), limit: 10 };
    expect(await apply(store(), hit(counter, 3, guarded), hit(late, 0, guarded))).toEqual([3, 0]);
    expect(await apply(store(), hit(counter, 1), hit(late, 2))).toEqual([4, 2]);
    const { count, timeToLive } = await store().readCounter(counter);
    expect(count).toBe(4);
    expect(timeToLive).toBeGreaterThan(4_000);
    expect(timeToLive).toBeLessThanOrEqual(5_002);
    await store().changeCounter(counter, null);
    expect(await store().changeCounter(counter, 7)).toMatchObject({ count: 0 });
    const created = await store().readCounter(counter);
    expect(created.timeToLive).toBeGreaterThan(4_000);
    expect(created.timeToLive).toBeLessThanOrEqual(5_002);
    await until('the late counter has expired', async () => (await store().readCounter(late)).count === 0);
  });

  it('sets a counter, to which later hits are added, and keeps its expiry, or creates it with one', async () => {
    const counter = freshCounter(86_400);
    await apply(store(), hit(counter, 4));
    const before = await store().readCounter(counter);
    expect(await store().changeCounter(counter, 100)).toMatchObject({ count: 4 });
    const after = await store().readCounter(counter);
    expect(after.count).toBe(100);
    expectLifetime(after.timeToLive, 86_400);
    expect(after.timeToLive).toBeLessThanOrEqual(before.timeToLive!);
    expect(await apply(store(), hit(counter, 2))).toEqual([102]);
    const absent = freshCounter(7200);
    expect(await store().changeCounter(absent, 7)).toEqual(NONE);
    expectLifetime((await store().readCounter(absent)).timeToLive, 7200);
    expect(await apply(store(), hit(absent, 1))).toEqual([8]);
  });

  it('sets a counter to 0 and to the largest count', async () => {
    const counter = freshCounter();
    await store().changeCounter(counter, LARGEST_COUNT);
    expect(await apply(store(), hit(counter, 1))).toEqual([LARGEST_COUNT]);
    expect(await store().changeCounter(counter, 0)).toMatchObject({ count: LARGEST_COUNT });
    expect(await apply(store(), hit(counter, -5), hit(counter, 3))).toEqual([0, 3]);
  });

  it('clears a counter and no other, so that the next hit is the first one and sets the expiry', async () => {
    const [counter, other] = [freshCounter(3600), freshCounter(3600)];
    expect(await store().changeCounter(counter, null)).toEqual(NONE);
    await apply(store(), hit(counter, 9), hit(other, 2));
    expect(await store().changeCounter(counter, null)).toMatchObject({ count: 9 });
    expect(await store().readCounter(counter)).toEqual(NONE);
    expect(await apply(store(), hit(counter, 1))).toEqual([1]);
    expectLifetime((await store().readCounter(counter)).timeToLive, 3600);
    expect(await store().readCounter(other)).toMatchObject({ count: 2 });
  });
}

/** Waits for a server to start, which is then stopped after the tests of its store, also when they fail. */
type Use = <T extends AsyncDisposable>(starting: Promise<T>) => Promise<T>;

type Open = (use: Use) => AdministeredCounters | Promise<AdministeredCounters>;

/** Plays every scenario on a store, which is opened before the first of them and closed after the last. */
export function storeTests(where: string, open: Open, traits: Traits = {}): void {
  describe(`counters ${where}`, () => {
    const started: AsyncDisposable[] = [];
    let counters: AdministeredCounters;
    async function use<T extends AsyncDisposable>(starting: Promise<T>): Promise<T> {
      const server = await starting;
      started.push(server);
      return server;
    }
    beforeAll(async () => {
      counters = await open(use);
    });
    afterAll(async () => {
      await counters?.close();
      await Promise.all(started.map((server) => server[Symbol.asyncDispose]()));
    });
    countingScenarios(() => counters, traits);
    administrationScenarios(() => counters, traits);
    largeLimits(() => counters, traits.hasAlgorithms);
    postpaidLimits(() => counters, traits.hasAlgorithms === false ? ['fixed_window'] : undefined);
    severalLimits(() => counters, traits.hasAlgorithms === false ? ['fixed_window'] : undefined);
  });
}

/** Milliseconds in which a store answers even on a busy machine: these tests are not about timeouts. */
const PATIENT = { timeout: 60_000 };
/** So that a scenario can wait for the expiry. */
const NO_JITTER = { expirationJitterMaxSeconds: 0 };
/** For the algorithms. */
const CLOCK = { now: () => clock.now * 1000 };

/** Opens counters in Redis. @param second the address of a server for limits per second */
export async function redisStore(
  url: string,
  more: Partial<InstanceOptions> = {},
  second?: string,
): Promise<AdministeredCounters> {
  const perSecond = second === undefined ? undefined : instance(second, PATIENT);
  const counters = kvstoreCounters(
    options(instance(url, { ...PATIENT, ...more }), { ...NO_JITTER, ...CLOCK, perSecond }),
  );
  await firstValueFrom(counters.ready$);
  return counters;
}

export function memcachedStore(...servers: readonly MemcachedProcess[]): AdministeredCounters {
  return plaincacheCounters(plaincacheTestOptions(servers, NO_JITTER));
}

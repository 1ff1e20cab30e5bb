import type { AlgorithmLimit, BlockableState } from '../../../src/counting/algorithms/algorithm';
import { algorithmOf } from '../../../src/counting/limit';
import { type Group, LARGEST_COUNT, type Operation, type Result } from '../../../src/counting/operation';
import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import type { Counters } from '../../../src/streams/ports/counters';
import { applyTo } from '../../support/clients/lane-client';
import { allOrNothingGroup, grouped, operation, stopWhenOver } from '../../support/data/operations';
import fc from '../../support/data/properties';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { connected, instance } from './options';

// What the script of src/sinks/counters/kvstore/count-script.ts does to the keys and returns, and with how many
// commands. What all stores have in common is in ../counters.

/** Windows that end after the tests, whatever their clock shows. */
const YEAR = 31_536_000;

/** Unix time in microseconds. */
let now = 1_764_000_000_000_000;
const memory = new MemoryCounters({ maxKeys: 1_000_000, now: () => now / 1000 });
let server: RedisProcess;

beforeAll(async () => {
  server = await RedisProcess.start();
});
beforeEach(() => {
  now = 1_764_000_000_000_000;
});
afterEach(() => server.control.flushall());
afterAll(() => Promise.all([memory.close(), server[Symbol.asyncDispose]()]));

/** Counters at the time of the tests. */
function open() {
  return connected(instance(server.address), { expirationJitterMaxSeconds: 0, now: () => now });
}

function applied(counters: Counters, operations: readonly Operation[]): Promise<readonly Result[]> {
  return applyTo(counters.laneOf(operations[0]!), operations);
}

type Limit = Partial<AlgorithmLimit> & Pick<AlgorithmLimit, 'name'>;

/** Operations with an algorithm, one for each call, or one for all of them. */
function decided(key: string, limit: Limit, ...calls: readonly number[]): Operation {
  const { requestsPerUnit = 4, lengthSeconds = 60, burst, postpaid, blockFor } = limit;
  const algorithm = algorithmOf({ name: limit.name, requestsPerUnit, lengthSeconds, burst, postpaid, blockFor });
  const hits = calls.reduce((sum, each) => sum + each, 0);
  const made = operation(key, hits, { limit: requestsPerUnit, lengthSeconds, algorithm, calls: [...calls] });
  made.blockKey = blockFor && `${key}_blocked`;
  return made;
}

/** The same operations for another store. */
function copyOf(batch: readonly Operation[], prefix = ''): readonly Operation[] {
  return batch.map(({ limit, key, hits, group, calls, lease, onlyInWindow, purpose, blockKey, endsBlock }) => {
    const parts = { ...limit, limit: limit.requestsPerUnit, group, calls: calls && [...calls] };
    const copy = operation(prefix + key, hits, parts);
    copy.lease = lease && { ...lease };
    copy.onlyInWindow = onlyInWindow;
    copy.purpose = purpose;
    copy.blockKey = blockKey && prefix + blockKey;
    copy.endsBlock = endsBlock;
    return copy;
  });
}

function leased(made: Operation, wants: number, milliseconds = 250): Operation {
  made.lease = { wants, milliseconds, sentAt: 0, granted: 0 };
  return made;
}

function grantsOf(batch: readonly Operation[]): readonly (number | undefined)[] {
  return batch.map(({ lease }) => lease?.granted);
}

const NOT_AN_INTEGER = { code: 'store_failed', message: expect.stringContaining('not an integer') };

/** A time to live, which has begun to pass, but for less than 20 s. */
function near(seconds: number): unknown {
  const values = Array.from({ length: 20 }, (_, passed) => seconds - passed);
  return { asymmetricMatch: (value: unknown) => values.includes(Number(value)), toString: () => `about ${seconds}` };
}

/** The commands that the server executes meanwhile for the script, in alphabetical order. */
async function commandsOf(run: () => Promise<unknown>): Promise<readonly string[]> {
  await server.control.config('RESETSTAT');
  await run();
  const statistics = await server.control.info('commandstats');
  return Array.from(statistics.matchAll(/cmdstat_(\w+):calls=(\d+)/g), ([, name, calls]) => `${name} ${calls}`)
    .filter((each) => !/^(config|evalsha|eval|info|time|ping|script)/.test(each))
    .toSorted();
}

const BUCKET = { name: 'token_bucket', requestsPerUnit: 4, lengthSeconds: 60 } as const;
/** A hit takes 8,571,428 4/7 µs. */
const PARTS = { name: 'token_bucket', requestsPerUnit: 7, lengthSeconds: 60, burst: 3 } as const;
const SLIDING = { name: 'sliding_window', requestsPerUnit: 4, lengthSeconds: 60 } as const;
const FIXED = { name: 'fixed_window', requestsPerUnit: 4, lengthSeconds: YEAR } as const;
const BLOCK = { first: 60, factor: 3, most: 300, forgottenAfter: 120 };
/** Limits, of which those of one rate and one length of window share a key. */
const LIMITS = {
  bucket: BUCKET,
  burst: { ...BUCKET, burst: 2 },
  parts: PARTS,
  fewer: { ...PARTS, burst: 2 },
  seven: { ...PARTS, burst: 7 },
  // A hit takes a third of a microsecond.
  fast: { ...BUCKET, requestsPerUnit: 3_000_000, lengthSeconds: 1, burst: 4 },
  sliding: SLIDING,
  // A minute, and longer ones up to five.
  blocking: { ...FIXED, blockFor: BLOCK },
  blockingSliding: { ...SLIDING, blockFor: BLOCK },
  blockingBucket: { ...BUCKET, blockFor: BLOCK },
  blockingParts: { ...PARTS, blockFor: { ...BLOCK, factor: 1, most: 60, forgottenAfter: 0 } },
};
/**
 * Limits of which hits are taken for later calls: with room for some, with parts of a microsecond, and with many hits
 * in one.
 */
const LENDING = [
  { ...SLIDING, requestsPerUnit: 100 },
  { ...BUCKET, requestsPerUnit: 60, burst: 90 },
  { ...PARTS, requestsPerUnit: 700, burst: 130 },
  { ...BUCKET, requestsPerUnit: 3_000_000, lengthSeconds: 1, burst: 3_000 },
  // Full when it takes 1 s: some tokens come back, and some do not.
  { ...BUCKET, requestsPerUnit: 100, lengthSeconds: 1, burst: 100 },
];
/** Limits that are asked, and receive reports. */
const SERVED = {
  ...LIMITS,
  fixed: FIXED,
  postpaid: { ...BUCKET, postpaid: true },
  shares: { ...PARTS, postpaid: true },
};
const KEYS: Readonly<Record<string, string>> = { burst: 'bucket', fewer: 'parts', seven: 'parts' };

const anyCalls = fc.array(fc.constantFrom(1, 1, 1, 2, 3, 0, -1, -3, 9), { minLength: 1, maxLength: 5 });
const anyCount = fc.record({ key: fc.constantFrom('a', 'b', 'c'), hits: fc.integer({ min: -3, max: 4 }) });
const anyStop = fc
  .record({
    isOver: fc.boolean(),
    steps: fc.array(fc.tuple(anyCount, fc.integer({ min: 0, max: 9 })), { minLength: 1, maxLength: 4 }),
  })
  .map(({ isOver, steps }) => {
    const counted = steps.map(([{ key, hits }, limit]) => operation(key, hits, { limit, lengthSeconds: YEAR }));
    return grouped(stopWhenOver(isOver), ...counted);
  });
const anyName = fc.constantFrom(...(Object.keys(LIMITS) as (keyof typeof LIMITS)[]));
const anyDecided = fc
  .tuple(anyName, anyCalls)
  .map(([name, calls]) => [decided(KEYS[name] ?? name, LIMITS[name], ...calls)]);
/** Of asks, reports, also of more hits than any counter takes, and hits that are given back. */
const anyReported = fc
  .record({
    name: fc.constantFrom(
      'bucket',
      'burst',
      'parts',
      'fast',
      'sliding',
      'postpaid',
      'shares',
      'fixed',
      'blocking',
      'blockingSliding',
      'blockingBucket',
    ),
    calls: fc.array(fc.constantFrom(0, 1, 1, 3, 9, 40, -1, -30, 2 ** 32, 2 ** 52), { minLength: 1, maxLength: 5 }),
  })
  .map(({ name, calls }) => {
    // Those that block have calls of both kinds.
    const key = name.startsWith('blocking') ? name : `served_${name}`;
    const made = decided(key, SERVED[name as keyof typeof SERVED], ...calls);
    made.purpose = 'report';
    return [made];
  });
const GROUPED = ['bucket', 'parts', 'sliding', 'fixed', 'blocking', 'blockingSliding', 'blockingBucket'] as const;
const anyGroup = fc
  .tuple(fc.subarray([...GROUPED], { minLength: 1 }), anyCalls)
  .map(([names, calls]) =>
    grouped(
      allOrNothingGroup(),
      ...names.map((name) => decided(name, name === 'fixed' ? FIXED : LIMITS[name], ...calls)),
    ),
  );
/** An operator sets a counter, which ends its block. */
const anyEnded = fc
  .tuple(fc.constantFrom('blocking', 'blockingSliding', 'blockingBucket', 'blockingParts'), fc.nat(3))
  .map(([name, hits]) => {
    const made = decided(name, LIMITS[name], -LARGEST_COUNT, hits);
    made.endsBlock = true;
    return [made];
  });
/** Of limits of which enough is left, in keys of their own. */
const anyLent = fc
  .record({
    made: fc.oneof(
      fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 200 })).map(([hits, limit]) => {
        return operation(`counted_${limit}`, hits, { limit, lengthSeconds: YEAR });
      }),
      fc
        .tuple(fc.constantFrom(...LENDING), fc.array(fc.constantFrom(1, 4, 0, 9), { minLength: 1, maxLength: 3 }))
        .map(([limit, calls]) => decided(`lent_${LENDING.indexOf(limit)}`, limit, ...calls)),
    ),
    wants: fc.constantFrom(0, 1, 2, 7, 1000),
    milliseconds: fc.constantFrom(0, 0.5, 0.99, 250),
  })
  .map(({ made, wants, milliseconds }) => [leased(made, wants, milliseconds)]);
/** Hits that are given back, if the time is the one that they were taken in, just before it, or just after it. */
const anyReturned = fc
  .tuple(fc.constantFrom(...LENDING), fc.constantFrom(-1, -2, -9), fc.constantFrom(-1, 0, 0, 1))
  .map(([limit, hits, offset]) => {
    const made = decided(`lent_${LENDING.indexOf(limit)}`, limit, hits);
    made.onlyInWindow = offset;
    const [taken, read] = [65, 0].map((each) => decided(made.key, limit, each)) as [Operation, Operation];
    return [taken, made, read];
  });
const anyStep = fc.oneof(
  anyLent,
  anyReturned,
  anyEnded,
  anyCount.map(({ key, hits }) => [operation(key, hits, { lengthSeconds: YEAR })]),
  anyStop,
  anyDecided,
  anyReported,
  anyGroup,
);
/** In microseconds. */
const anyPause = fc.constantFrom(0, 0, 1, 999, 1_000_000, 15_000_000, 29_999_999, 60_000_000, 130_000_000);

it('gives the keys of a call different expiries, below EXPIRATION_JITTER_MAX_SECONDS later than they need', async () => {
  const counters = await connected(instance(server.address), { expirationJitterMaxSeconds: 10 });
  const random = jest.spyOn(Math, 'random').mockReturnValue(0.7);
  const keys = Array.from({ length: 10 }, (_, index) => `k${index}`);
  const lent = leased(operation('lent', 1, { lengthSeconds: YEAR }), 1);
  await applied(counters, [...keys.map((key) => operation(key, 1, { lengthSeconds: YEAR })), lent]);
  random.mockRestore();
  const left = await Promise.all([...keys, 'lent'].map((key) => server.control.pttl(key)));
  const least = Math.min(...left);
  expect(least / 1000).toEqual(expect.closeTo(YEAR, -2));
  const later = left.map((milliseconds) => Math.round((milliseconds - least) / 1000));
  expect([later.slice(0, 10).toSorted((one, other) => one - other), later[10]]).toEqual([[...keys.keys()], 7]);
});

it('applies a batch of any operations as the counters in memory do', async () => {
  const counters = await open();
  let played = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(anyPause, fc.array(anyStep, { minLength: 1, maxLength: 6 })), { minLength: 1, maxLength: 6 }),
      async (turns) => {
        played += 1;
        for (const [pause, steps] of turns) {
          now += pause;
          const batch = copyOf(steps.flat(), `${played}_`);
          for (const made of batch) {
            const { algorithm } = made.limit;
            // Of a bucket that takes long to be full.
            const present = algorithm?.windowAt({ ...algorithm.empty(now), whole: Infinity }, 0)?.number;
            if (made.onlyInWindow !== undefined) made.onlyInWindow += present!;
          }
          const inMemory = copyOf(batch);
          const expected = memory.applyNow(inMemory);
          expect(await applied(counters, batch)).toEqual(expected);
          expect(grantsOf(batch)).toEqual(grantsOf(inMemory));
        }
      },
    ),
    { numRuns: 150 },
  );
});

describe('a key of a counter', () => {
  it('takes one command more for its expiry when it is new, and two when it may have none', async () => {
    const counters = await open();
    function hit(key: string, hits = 1) {
      return applied(counters, [operation(key, hits), operation('read', 0)]);
    }
    expect(await commandsOf(() => hit('k'))).toEqual(['expire 1', 'get 1', 'incrby 1', 'ttl 1']);
    expect(await commandsOf(() => hit('k'))).toEqual(['get 1', 'incrby 1']);
    await server.control.set('k', LARGEST_COUNT - 5);
    expect(await commandsOf(() => hit('k', 5))).toEqual(['get 1', 'incrby 1']);
    // What cannot be represented is undone, and the rest added.
    expect(await commandsOf(() => hit('k', 7))).toEqual(['decrby 1', 'get 1', 'incrby 1']);
    await server.control.set('k', LARGEST_COUNT - 5);
    expect(await commandsOf(() => hit('k', 7))).toEqual(['decrby 1', 'get 1', 'incrby 2']);
    expect(await server.control.get('k')).toBe(String(LARGEST_COUNT));
    // A key that may have been created has its expiry examined.
    await server.control.del('k');
    expect(await commandsOf(() => hit('k', 3))).toEqual(['expire 1', 'get 1', 'incrby 1', 'ttl 1']);
    expect(await commandsOf(() => hit('k', -9))).toEqual(['decrby 1', 'get 2']);
    expect(await commandsOf(() => hit('k', -9))).toEqual(['get 2']);
  });

  it('is counted on by users who may not read or set its expiry, nor lower it', async () => {
    for (const [user, command, lowered] of [
      ['blind', 'ttl', LARGEST_COUNT - 1],
      ['raising', 'decrby', { code: 'store_failed' }],
    ] as const) {
      await server.control.call('ACL', 'SETUSER', user, 'on', '>x', '~*', '+@all', `-${command}`);
      const counters = await connected(instance(server.address, { auth: `${user}:x` }));
      expect(await applied(counters, [operation('k', 1), operation('k', LARGEST_COUNT)])).toEqual([1, LARGEST_COUNT]);
      expect(await applied(counters, [operation('k', -1), operation('new', 1)])).toMatchObject([lowered, 1]);
      await server.control.del('k', 'new');
    }
  });

  it('keeps an expiry that is as late as the end of the window, and gets its own if it is earlier', async () => {
    const clock = jest.spyOn(Date, 'now').mockReturnValue(1_765_000_000_000);
    const counters = await open();
    const lengthSeconds = 3_600_000;
    const left = 2_600_000;
    await server.control.set('late', 1, 'PX', left * 1000 + 400);
    await server.control.set('early', 1, 'PX', left * 1000 - 600);
    await applied(
      counters,
      ['late', 'early'].map((key) => operation(key, 1, { lengthSeconds })),
    );
    clock.mockRestore();
    expect(await server.control.ttl('late')).toBeLessThanOrEqual(left);
    expect(await server.control.ttl('early')).toBeGreaterThan(left);
  });
});

describe('operations that stop when one is over', () => {
  it('get an expiry, and only read where another one is over', async () => {
    const counters = await open();
    function request(hits: number, group: Group) {
      return applied(counters, grouped(group, operation('a', hits, { limit: 3 }), operation('b', 1, { limit: 9 })));
    }
    expect(await request(3, stopWhenOver())).toEqual([3, 1]);
    expect(Math.min(await server.control.ttl('a'), await server.control.ttl('b'))).toBeGreaterThan(50);
    expect(await commandsOf(() => request(1, stopWhenOver()))).toEqual(['get 3', 'incrby 1', 'ttl 1']);
    await server.control.set('b', 'text');
    // What cannot be read is not over.
    expect(await request(-2, stopWhenOver())).toMatchObject([2, NOT_AN_INTEGER]);
  });
});

describe('a token bucket', () => {
  it('has the time at which it is full as the value of its key, which lives longer than that', async () => {
    const counters = await open();
    await applied(counters, [decided('plain', BUCKET, 1), decided('parts', PARTS, 1, 1)]);
    expect(await server.control.mget('plain', 'parts')).toEqual([`${now + 15_000_000}`, `${now + 17_142_857}:1/7`]);
    const ttls = [await server.control.ttl('plain'), await server.control.ttl('parts')];
    expect(ttls).toEqual([near(61 + 20), near(26 + 20)]);
    await applied(counters, [decided('parts', PARTS, -1, -1, 1)]);
    expect(await server.control.get('parts')).toBe(`${now + 8_571_428}:4/7`);
    await server.control.set('rest', `${now}:4/7`);
    await applied(counters, [decided('all', { ...PARTS, burst: 7 }, 1, 1, 1, 1, 1, 1, 1), decided('rest', PARTS, 0)]);
    expect(await server.control.mget('all', 'rest')).toEqual([`${now + 60_000_000}`, `${now}:4/7`]);
  });

  it('in use takes one command, and few others', async () => {
    const counters = await open();
    function hit(...calls: readonly number[]) {
      return applied(counters, [decided('k', BUCKET, ...calls)]);
    }
    expect(await commandsOf(() => hit(2))).toEqual(['incrby 1', 'set 1']);
    expect(await commandsOf(() => hit(2))).toEqual(['incrby 1']);
    expect(await commandsOf(() => applied(counters, [decided('all', BUCKET, 4)]))).toEqual(['incrby 1', 'set 1']);
    // Full again.
    now += 90_000_000;
    expect(await commandsOf(() => hit(1, 1))).toEqual(['incrby 2']);
    expect(await commandsOf(() => hit(1, 2))).toEqual(['decrby 1', 'incrby 2']);
    expect(await commandsOf(() => hit(3))).toEqual(['decrby 1', 'incrby 1']);
    expect(await commandsOf(() => hit(0))).toEqual(['get 1']);
    expect(await commandsOf(() => hit(5))).toEqual(['get 1']);
    expect(await commandsOf(() => hit(-1))).toEqual(['get 1', 'incrby 1']);
    expect(await server.control.get('k')).toBe(`${now + 30_000_000}`);
    now += 30_000_000;
    expect(await commandsOf(() => hit(1))).toEqual(['incrby 1']);
    now += 15_000_000;
    // A full one that is denied, or read, is as it was.
    now += 90_000_000;
    await hit(0);
    expect(await server.control.get('k')).toBe(`${now - 90_000_000}`);
    expect(await commandsOf(() => applied(counters, [decided('absent', BUCKET, 5)]))).toEqual([
      'expire 1',
      'get 1',
      'ttl 1',
    ]);
    expect(await server.control.exists('absent')).toBe(0);
    expect(await commandsOf(() => applied(counters, [decided('absent', BUCKET, 5)]))).toEqual(['get 1']);
  });

  it('has the expiry of its key examined again after ten seconds, and moved if it is too early', async () => {
    const counters = await open();
    function hit() {
      return applied(counters, [decided('k', BUCKET, 1), decided('parts', PARTS, 0)]);
    }
    await hit();
    await server.control.expire('k', 5);
    expect(await commandsOf(hit)).toEqual(['get 1', 'incrby 1']);
    const clock = jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 10_001);
    expect(await commandsOf(hit)).toEqual(['expire 2', 'get 1', 'incrby 1', 'ttl 2']);
    expect(await server.control.ttl('k')).toEqual(near(81));
    await server.control.expire('k', 75);
    clock.mockReturnValue(performance.now() + 10_001);
    expect(await commandsOf(() => applied(counters, [decided('k', BUCKET, 9)]))).toEqual(['get 1', 'ttl 1']);
    clock.mockRestore();
    expect(await server.control.ttl('k')).toBeLessThanOrEqual(75);
  });

  it('that is full later than in its span, as the clock has gone back, is cut to it, also by a call that is denied', async () => {
    const counters = await open();
    const cut = `${now + 25_714_285}:5/7`;
    await server.control.mset('k', `${now + 90_000_000}`, 'exact', `${now + 25_714_285}:6/7`, 'full', cut);
    await server.control.set('parts', `${now + 90_000_000}:3/7`);
    const batch = [decided('k', BUCKET, 1), ...['parts', 'exact', 'full'].map((key) => decided(key, PARTS, 1))];
    const full = { whole: 25_714_285, part: 5, parts: 7, now };
    async function denied(): Promise<void> {
      const states = await applied(counters, batch);
      expect(states).toEqual([{ whole: 60_000_000, part: 0, parts: 1, now }, full, full, full]);
    }
    // The last one is full exactly then.
    expect(await commandsOf(denied)).toEqual(['decrby 1', 'expire 2', 'get 3', 'incrby 2', 'set 2', 'ttl 2']);
    expect(await server.control.mget('k', 'parts', 'exact')).toEqual([`${now + 60_000_000}`, cut, cut]);
    expect(await commandsOf(denied)).toEqual(['decrby 1', 'get 3', 'incrby 1']);
  });

  it('of another rate is taken over, rounded up to a microsecond', async () => {
    const counters = await open();
    await server.control.mset('plain', `${now + 5}:3/7`, 'parts', `${now + 5}:3/5`, 'whole', `${now + 5}`);
    expect(
      await applied(counters, [decided('plain', BUCKET, 1), decided('parts', PARTS, 0), decided('whole', PARTS, 0)]),
    ).toEqual([
      { whole: 6, part: 0, parts: 1, now },
      { whole: 6, part: 0, parts: 7, now },
      { whole: 5, part: 0, parts: 7, now },
    ]);
    expect(await server.control.mget('plain', 'parts')).toEqual([`${now + 15_000_006}`, `${now + 5}:3/5`]);
  });

  it('has the time of the server where the caller has none', async () => {
    const counters = await connected(instance(server.address));
    async function time(): Promise<number> {
      const [seconds, microseconds] = await server.control.time();
      return Number(seconds) * 1_000_000 + Number(microseconds);
    }
    const before = await time();
    const [state] = (await applied(counters, [decided('k', BUCKET, 0)])) as readonly { readonly now: number }[];
    expect(state!.now).toBeGreaterThan(before);
    expect(state!.now).toBeLessThan(await time());
  });
});

describe('a sliding window', () => {
  /** Of the present window. */
  function number(): number {
    return Math.floor(now / 60_000_000);
  }
  function valueOf(index: number, hits: number): number {
    return ((index % 2_097_151) + 1) * 2 ** 32 + hits;
  }

  it('has the number of the window and its hits as the value of its key', async () => {
    const counters = await open();
    await applied(counters, [decided('k', SLIDING, 1, 1)]);
    now += 60_000_000;
    await applied(counters, [decided('k', SLIDING, 1)]);
    const values = [0, 1].map((parity) => {
      const index = number() % 2 === parity ? number() : number() - 1;
      return String(valueOf(index, index === number() ? 1 : 2));
    });
    expect(await server.control.mget('k_0', 'k_1')).toEqual(values);
    expect(await server.control.ttl('k_0')).toEqual(near(140));
  });

  it('in use takes two commands, and few others', async () => {
    const counters = await open();
    function hit(...calls: readonly number[]) {
      return applied(counters, [decided('k', SLIDING, ...calls)]);
    }
    expect(await commandsOf(() => hit(1))).toEqual(['get 1', 'incrby 1', 'set 1']);
    expect(await commandsOf(() => hit(1))).toEqual(['get 1', 'incrby 1']);
    expect(await commandsOf(() => hit(1, 2))).toEqual(['decrby 1', 'get 1', 'incrby 2']);
    expect(await commandsOf(() => hit(2))).toEqual(['decrby 1', 'get 1', 'incrby 1']);
    expect(await commandsOf(() => hit(-3))).toEqual(['get 2', 'incrby 1']);
    expect(await commandsOf(() => hit(3))).toEqual(['get 1', 'incrby 1']);
    expect(await commandsOf(() => hit(5))).toEqual(['get 2']);
    expect(await commandsOf(() => hit(0))).toEqual(['get 2']);
    now += 60_000_000;
    // Given back to the window before.
    expect(await commandsOf(() => hit(-2))).toEqual(['get 2', 'incrby 1']);
    expect(await commandsOf(() => hit(4))).toEqual(['del 1', 'get 1', 'incrby 1']);
    expect(await hit(3)).toEqual([{ previous: 1, current: 0, now }]);
    // Of the key that the window before the last one has left.
    now += 60_000_000;
    expect(await commandsOf(() => hit(2))).toEqual(['decrby 1', 'get 1', 'incrby 1']);
    expect(await commandsOf(() => hit(1))).toEqual(['get 1', 'incrby 1', 'set 1']);
    // Of what was counted in the window before, half is left, rounded up.
    now += 90_000_000;
    expect(await commandsOf(() => hit(3))).toEqual(['get 1', 'incrby 1', 'set 1']);
  });

  it('does not count windows of the future, nor a count that is none', async () => {
    const counters = await open();
    const present = valueOf(number(), 3);
    await server.control.mset(
      'next_0',
      valueOf(number() + 1, 0),
      'k_0',
      valueOf(number() + 2, 3),
      'k_1',
      valueOf(number() + 1, 3),
      'text_0',
      'x',
      'list_0',
      present,
    );
    await server.control.rpush('list_1', 'x');
    const keys = ['next', 'k', 'text', 'list'];
    expect(
      await applied(
        counters,
        keys.map((key) => decided(key, SLIDING, 1)),
      ),
    ).toMatchObject([
      { previous: 0, current: 0, now },
      { previous: 0, current: 0, now },
      NOT_AN_INTEGER,
      { code: 'store_failed', message: expect.stringContaining('another type') },
    ]);
    now += 60_000_000;
    expect(
      await applied(
        counters,
        keys.slice(2).map((key) => decided(key, SLIDING, 1)),
      ),
    ).toMatchObject([NOT_AN_INTEGER, { code: 'store_failed', message: expect.stringContaining('another type') }]);
    expect(await server.control.mget('text_0', 'text_1', 'list_0')).toEqual(['x', null, String(present)]);
  });
});

describe('a limit that blocks', () => {
  const MINUTE = 60_000_000;
  const BLOCKING = ['blocking', 'blockingSliding', 'blockingBucket', 'blockingParts'] as const;

  it.each(BLOCKING)(
    'has the same blocks as in memory: longer ones, forgotten ones, and when the clock goes back: %s',
    async (name) => {
      const counters = await open();
      const lengths: number[] = [];
      for (const [pause, ...calls] of [
        // The first block; the middle of it; its end.
        [0, 1, 1, 1, 1, 1, 1],
        [MINUTE / 2, 1, 0, -1],
        [MINUTE / 2, 4, 1],
        // Longer ones, up to the longest.
        [MINUTE * 3, 9],
        [MINUTE * 5, 4],
        // Not forgotten until the last moment, and forgotten at it.
        [MINUTE * 2 - 1, 9],
        [MINUTE * 5 + MINUTE * 2, 9],
        // Back by an hour, and the block lasts from there.
        [-MINUTE * 60, 1],
        [MINUTE - 1, 1],
        [1, 1],
      ] as const) {
        now += pause;
        const batch = [decided(`grows_${name}`, LIMITS[name], ...calls)];
        const expected = memory.applyNow(copyOf(batch)) as readonly BlockableState[];
        expect(await applied(counters, batch)).toEqual(expected);
        lengths.push(expected[0]!.block.length / MINUTE);
      }
      const isGrowing = LIMITS[name].blockFor.factor > 1;
      expect(lengths).toEqual(isGrowing ? [0, 1, 1, 3, 5, 5, 0, 1, 1, 1] : [0, 1, 0, 0, 0, 0, 0, 1, 1, 0]);
    },
  );

  it('has a key for the block, which is kept until that is forgotten, and none for the counter meanwhile', async () => {
    const counters = await open();
    for (const name of BLOCKING) {
      const [key, forgotten] = [`k_${name}`, LIMITS[name].blockFor.forgottenAfter];
      await applied(counters, [decided(key, LIMITS[name], 1, 9)]);
      expect(await server.control.keys('k_*')).toEqual([`${key}_blocked`]);
      expect(await server.control.get(`${key}_blocked`)).toBe(`${now + MINUTE}:${MINUTE}`);
      expect(await server.control.ttl(`${key}_blocked`)).toEqual(near(60 + forgotten + 20));
      // A block that is over leaves its key until it is forgotten; one that an operator ends leaves none.
      const ended = decided(key, LIMITS[name], -LARGEST_COUNT, 1);
      ended.endsBlock = true;
      expect(await applied(counters, [ended])).toMatchObject([{ block: { end: now + MINUTE, length: MINUTE } }]);
      expect(await server.control.exists(`${key}_blocked`)).toBe(0);
      expect(await applied(counters, [decided(key, LIMITS[name], 0)])).toMatchObject([{ block: { length: 0 } }]);
      await server.control.flushall();
    }
  });

  it('in use takes one command more than without, and in a block two that read', async () => {
    const counters = await open();
    function hit(...calls: readonly number[]) {
      return applied(counters, [decided('used', LIMITS.blocking, ...calls)]);
    }
    await hit(1);
    expect(await commandsOf(() => hit(1))).toEqual(['get 1', 'incrby 1']);
    expect(await commandsOf(() => hit(9))).toEqual(['del 1', 'get 2', 'set 1']);
    expect(await commandsOf(() => hit(1))).toEqual(['get 2']);
  });

  it('fails when its block is none, or there is no memory for one, and counts nothing then', async () => {
    const counters = await open();
    await server.control.set('text_blocked', 'x');
    expect(await applied(counters, [decided('text', LIMITS.blocking, 1)])).toMatchObject([NOT_AN_INTEGER]);
    await applied(counters, [decided('full', LIMITS.blocking, 3)]);
    await server.control.config('SET', 'maxmemory', '1');
    const failed = { code: 'store_failed', message: 'the counter store is out of memory' };
    expect(await applied(counters, [decided('full', LIMITS.blocking, 3)])).toMatchObject([failed]);
    await server.control.config('SET', 'maxmemory', '0');
    expect(await server.control.get('full')).toBe('3');
    expect(await server.control.keys('*')).toEqual(expect.arrayContaining(['full', 'text_blocked']));
  });
});

describe('limits of one call', () => {
  function hit(counters: Counters, hits: number, ...limits: readonly (readonly [key: string, limit: Limit])[]) {
    return applied(counters, grouped(allOrNothingGroup(), ...limits.map(([key, limit]) => decided(key, limit, hits))));
  }
  const more = { ...FIXED, requestsPerUnit: 9 };

  it('in use take one command each, and none of them is changed by a call that another one denies', async () => {
    const counters = await open();
    const limits = [
      ['f', more],
      ['b', BUCKET],
    ] as const;
    expect(await commandsOf(() => hit(counters, 1, ...limits))).toEqual(['expire 1', 'incrby 2', 'set 1', 'ttl 1']);
    expect(await server.control.ttl('f')).toEqual(near(YEAR));
    expect(await commandsOf(() => hit(counters, 1, ...limits))).toEqual(['incrby 2']);
    expect(await commandsOf(() => hit(counters, 3, ...limits))).toEqual(['decrby 2', 'incrby 2']);
    expect(await commandsOf(() => hit(counters, 3, limits[1], limits[0]))).toEqual(['decrby 1', 'get 1', 'incrby 1']);
    expect(await server.control.mget('f', 'b')).toEqual(['2', `${now + 30_000_000}`]);
    // Without a trace of what is absent.
    expect(await hit(counters, 3, ['new', more], ['b', BUCKET])).toMatchObject([{ current: 0 }, { whole: 30_000_000 }]);
    expect(await server.control.exists('new')).toBe(0);
    // The expiry of a fixed window is examined when it may be new.
    await server.control.set('f', 0);
    expect(await commandsOf(() => hit(counters, 1, ...limits))).toEqual(['expire 1', 'incrby 2', 'ttl 1']);
    await server.control.set('f', 0);
    expect(await commandsOf(() => hit(counters, 1, limits[0]))).toEqual(['expire 1', 'incrby 1', 'ttl 1']);
    await server.control.set('f', 'text');
    expect(await hit(counters, 1, ...limits)).toMatchObject([NOT_AN_INTEGER, NOT_AN_INTEGER]);
    expect(await hit(counters, 1, limits[1], limits[0])).toMatchObject([NOT_AN_INTEGER, NOT_AN_INTEGER]);
    expect(await server.control.get('b')).toBe(`${now + 45_000_000}`);
    function failing() {
      return hit(counters, 1, ['absent', BUCKET], limits[0]);
    }
    expect(await commandsOf(failing)).toEqual(['del 1', 'get 1', 'incrby 2']);
  });

  it('fail together when the server has no memory for one of them', async () => {
    const counters = await open();
    await hit(counters, 1, ['f', more]);
    await server.control.config('SET', 'maxmemory', '1');
    const failed = { code: 'store_failed', message: 'the counter store is out of memory' };
    expect(await hit(counters, 1, ['f', more], ['b', BUCKET])).toMatchObject([failed, failed]);
    expect(await hit(counters, 1, ['s', SLIDING])).toMatchObject([failed]);
    await server.control.config('SET', 'maxmemory', '0');
    expect(await server.control.keys('*')).toEqual(['f']);
    expect(await server.control.get('f')).toBe('1');
  });
});

describe('a step that takes hits for later calls', () => {
  it('gives a new key its expiry, and leaves each result of its batch to its operation', async () => {
    const counters = await open();
    const batch = [
      leased(operation('f', 2, { limit: 100, lengthSeconds: 60 }), 50),
      operation('g', 3, { lengthSeconds: 60 }),
      leased(decided('s', { ...SLIDING, requestsPerUnit: 100 }, 1), 50),
      decided('b', BUCKET, 1),
      leased(operation('r', 0, { limit: 100, lengthSeconds: 60 }), 3),
      leased(decided('c', { ...BUCKET, requestsPerUnit: 60, burst: 60 }, 0), 2),
      operation('h', 4, { lengthSeconds: 60 }),
    ];
    expect(await applied(counters, batch)).toMatchObject([2, 3, { current: 0 }, { whole: 0 }, 0, { whole: 0 }, 4]);
    // A sixteenth of what is left.
    expect(grantsOf(batch)).toEqual([6, undefined, 6, undefined, 3, 2, undefined]);
    expect(await server.control.mget('f', 'r', 'c')).toEqual(['8', '3', String(now + 250_000 + 2_000_000 + 1)]);
    for (const key of ['f', 'r']) expect(await server.control.ttl(key)).toEqual(near(60));
    expect(await server.control.ttl('c')).toEqual(near(81));
  });

  it('takes nothing from a key with too little left, that is no counter, may not be changed, or has no memory', async () => {
    const counters = await open();
    const one = leased(operation('none', 1, { limit: 31 }), 5);
    expect(await commandsOf(() => applied(counters, [one]))).toEqual(['expire 1', 'incrby 1', 'ttl 1']);
    await server.control.del('none');
    await server.control.set('text', 'x');
    const texts = ['counted', 'decided'].map((kind) => {
      return leased(kind === 'counted' ? operation('text', 1, { limit: 100 }) : decided('text', BUCKET, 1), 5);
    });
    expect(await applied(counters, texts)).toMatchObject([NOT_AN_INTEGER, NOT_AN_INTEGER]);
    await server.control.config('SET', 'maxmemory', '1');
    const reads = [
      leased(operation('f', 0, { limit: 100, lengthSeconds: 60 }), 5),
      leased(decided('b', { ...BUCKET, requestsPerUnit: 100, burst: 100 }, 0), 5),
    ];
    expect(await applied(counters, reads)).toMatchObject([0, { message: 'the counter store is out of memory' }]);
    await server.control.config('SET', 'maxmemory', '0');
    expect([grantsOf([one]), grantsOf(texts), grantsOf(reads)]).toEqual([[0], [0, 0], [0, 0]]);
    expect(await server.control.keys('*')).toEqual(['text']);
  });
});

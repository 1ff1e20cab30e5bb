import type { CountedLimit } from '../../../src/counting/operation';
import { LARGEST_COUNT } from '../../../src/counting/operation';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import type { OpenReservations, ReservationChange, ReservationStep } from '../../../src/streams/ports/reservations';
import { MAX_OPEN } from '../../../src/streams/ports/reservations';
import { counterOf } from '../../support/data/operations';
import fc from '../../support/data/properties';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { connected, instance } from './options';

// What the script of src/sinks/counters/kvstore/reservation-script.ts does to the keys, and returns. What all stores
// have in common is in ../counters/reservations.test.ts.

/** Windows that end after the tests. */
const YEAR = 31_536_000;

/** In Unix milliseconds. */
let now = 1_764_000_000_000;
const memory = new MemoryCounters({ maxKeys: 1_000_000, now: () => now });
let server: RedisProcess;
let counters: KvstoreCounters;

beforeAll(async () => {
  server = await RedisProcess.start();
});
beforeEach(async () => {
  now = 1_764_000_000_000;
  const options = { expirationJitterMaxSeconds: 0, now: () => now * 1000 };
  counters = await connected(instance(server.address), options);
});
afterEach(() => server.control.flushall());
afterAll(() => Promise.all([memory.close(), server[Symbol.asyncDispose]()]));

interface Use {
  readonly key: string;
  readonly hits: number;
  readonly limit?: number;
  readonly denies?: ReservationStep['denies'];
  readonly givesBack?: boolean;
  /** Whether it is entered in the list, also without hits. */
  readonly isHeld?: boolean;
}

function limitOf(requestsPerUnit: number): CountedLimit {
  return { requestsPerUnit, lengthSeconds: YEAR };
}

/** Opens a reservation that lives for so many seconds. */
function opening(
  id: string,
  uses: readonly Use[],
  { ttl = 10, isDenied = false, prefix = '' } = {},
): ReservationChange {
  const steps = uses.map(({ key, hits, limit = 10, denies = 'alone', givesBack = true, isHeld = true }, index) => ({
    key: prefix + key,
    hits,
    limit: limitOf(limit),
    denies,
    member: hits > 0 || isHeld ? `${givesBack ? 'c' : 's'}:${index}:${id}` : undefined,
  }));
  const opens = { ttl: ttl * 1000, isDenied, domain: 'd' };
  return { key: prefix + id, before: undefined, after: `open ${id}`, lifetime: 60_000, now, opens, steps };
}

/** Ends it with other hits, as it was opened with these changes of its counters. */
function ending(
  opened: ReservationChange,
  added: readonly number[],
  { before, hits }: { readonly before: string | undefined; readonly hits: readonly number[] },
): ReservationChange {
  const { key, lifetime } = opened;
  const steps = opened.steps.map((step, index): ReservationStep => ({
    ...step,
    hits: hits[index]! - added[index]!,
    denies: 'never',
    held: step.member === undefined ? undefined : added[index]!,
  }));
  return { key, before, after: 'ended', lifetime, now, steps };
}

/** Those that expire at the same time are in any order. */
function sorted({ count, first }: OpenReservations) {
  return { count, first: first.map((each) => JSON.stringify(each)).toSorted() };
}

function change(each: ReservationChange) {
  return counters.reservations.changeReservation(each);
}

const NAMES = ['a', 'b', 'c'];
const anyUse = fc.record({
  key: fc.constantFrom(...NAMES),
  hits: fc.constantFrom(0, 1, 2, 3, 7, 7, LARGEST_COUNT),
  limit: fc.constantFrom(0, 5, 10, LARGEST_COUNT),
  denies: fc.constantFrom('alone', 'alone', 'together', 'together', 'never'),
  givesBack: fc.boolean(),
  isHeld: fc.boolean(),
});
const anyHits = fc.array(fc.constantFrom(0, 1, 5, 9), { minLength: 3, maxLength: 3 });
const anyAction = fc.oneof(
  fc.record({
    id: fc.constantFrom('one', 'two', 'three'),
    uses: fc.array(anyUse, { maxLength: 3 }),
    ttl: fc.constantFrom(1, 10),
    isDenied: fc.constantFrom(false, false, false, true),
  }),
  fc.record({
    id: fc.constantFrom('one', 'two', 'three'),
    hits: anyHits,
    isStale: fc.constantFrom(false, false, true),
  }),
  fc.record({ pause: fc.constantFrom(0, 999, 1000, 5000) }),
);

it('opens and ends any reservations as in memory', async () => {
  let played = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(anyAction, { minLength: 1, maxLength: 14 }), async (actions) => {
      played += 1;
      const prefix = `${played}_`;
      const open = new Map<string, { change: ReservationChange; added: readonly number[] }>();
      async function both(each: ReservationChange) {
        const expected = await memory.changeReservation(each);
        const result = await change(each);
        expect(result).toEqual(expected);
        expect(await counters.reservations.readRecord(each.key)).toBe(await memory.readRecord(each.key));
        return result;
      }
      for (const action of actions) {
        if ('pause' in action) now += action.pause;
        else if ('uses' in action) {
          const opened = opening(action.id, action.uses, { ...action, prefix });
          const result = await both(opened);
          if (result.outcome === 'done')
            open.set(action.id, { change: opened, added: result.steps.map(({ added }) => added) });
        } else {
          const opened = open.get(action.id);
          if (opened === undefined) continue;
          const before = action.isStale ? 'another' : await memory.readRecord(prefix + action.id);
          const result = await both(ending(opened.change, opened.added, { before, hits: action.hits }));
          if (result.outcome === 'done') open.delete(action.id);
        }
        for (const name of NAMES) {
          const counter = { key: prefix + name, limit: limitOf(1) };
          const { count } = await counters.readCounter(counter);
          expect(count).toBe((await memory.readCounter(counter)).count);
          const [inRedis, inMemory] = [counters.reservations, memory].map((store) => store.readOpen(counter, now));
          expect(sorted(await inRedis!)).toEqual(sorted(await inMemory!));
        }
      }
    }),
    { numRuns: 60 },
  );
});

describe('the script for reservations', () => {
  const uses = [{ key: 'k', hits: 3 }];

  it('writes the record, the counter and the list, each with its expiry', async () => {
    expect(await change(opening('one', uses))).toMatchObject({ outcome: 'done', steps: [{ count: 3, added: 3 }] });
    expect(await server.control.mget('one', 'k')).toEqual(['open one\n3:3', '3']);
    expect(await server.control.zrange('k:reservations', 0, -1, 'WITHSCORES')).toEqual(['c3:0:one', `${now + 10_000}`]);
    const left = await server.control.ttl('k');
    expect(await server.control.pttl('one')).toBeGreaterThan(40_000);
    expect(await server.control.pttl('one')).toBeLessThanOrEqual(60_000);
    expect(left).toBeGreaterThan(YEAR - 60);
    const lists = await server.control.ttl('k:reservations');
    const window = YEAR - (Math.floor(Date.now() / 1000) % YEAR);
    expect(Math.abs(lists - window - 60)).toBeLessThan(20);
    // The list of a counter keeps a later expiry.
    await server.control.expire('k:reservations', 2 * YEAR);
    await change(opening('two', uses));
    expect(await server.control.ttl('k:reservations')).toBeGreaterThan(YEAR + 3600);
  });

  it('returns the record that is there instead, and nothing else', async () => {
    await change(opening('one', uses));
    const { before, ...opened } = opening('one', uses);
    expect(before).toBeUndefined();
    expect(await change({ ...opened, before })).toEqual({ outcome: 'changed', record: 'open one\n3:3' });
    expect(await change({ ...opened, key: 'two', before: 'x' })).toEqual({ outcome: 'changed', record: undefined });
    expect(await server.control.get('k')).toBe('3');
  });

  it('removes a record, and writes one without steps as it is', async () => {
    const record = { key: 'r', lifetime: 60_000, now, steps: [] };
    expect(await change({ ...record, before: undefined, after: 'some' })).toMatchObject({ outcome: 'done' });
    expect(await server.control.get('r')).toBe('some');
    expect(await change({ ...record, before: 'some', after: undefined })).toMatchObject({ outcome: 'done' });
    expect(await server.control.exists('r')).toBe(0);
    expect(await change({ ...record, before: undefined, after: undefined })).toMatchObject({ outcome: 'done' });
  });

  it('is denied when its counter has as many open ones as it may have, without those that have expired', async () => {
    const members = Array.from({ length: MAX_OPEN - 1 }, (_, index) => [now + 60_000, `s1:0:${index}`]).flat();
    await server.control.zadd('k:reservations', ...members, now, 'c1:0:expired', -1, 's1:0:expired');
    await server.control.set('k', 5);
    expect(await change(opening('one', uses))).toMatchObject({ outcome: 'done', steps: [{ count: 7 }] });
    expect(await server.control.zcard('k:reservations')).toBe(MAX_OPEN);
    expect(await change(opening('two', uses))).toEqual({ outcome: 'full', of: 'counter' });
    expect(await server.control.mget('k', 'two')).toEqual(['7', null]);
    // One that holds nothing is not entered.
    expect(await change(opening('none', [{ key: 'k', hits: 0, isHeld: false }]))).toMatchObject({ outcome: 'done' });
  });

  it('ends only some of those that have expired, the rest with the next one', async () => {
    const members = Array.from({ length: 150 }, (_, index) => [now - index - 1, `c1:0:${index}`]).flat();
    await server.control.zadd('k:reservations', ...members);
    await server.control.set('k', 1000);
    await change(opening('one', [{ key: 'k', hits: 1, limit: 2000 }]));
    expect(await server.control.get('k')).toBe('901');
    await change(opening('two', [{ key: 'k', hits: 1, limit: 2000 }]));
    expect(await server.control.get('k')).toBe('852');
    expect(await server.control.zcard('k:reservations')).toBe(2);
    // The rest do not count, also those that expire just now.
    const many = Array.from({ length: MAX_OPEN + 100 }, (_, index) => [now, `s1:0:${index}`]).flat();
    await server.control.zadd('many:reservations', ...many);
    expect(await change(opening('three', [{ key: 'many', hits: 1 }]))).toMatchObject({ outcome: 'done' });
    expect(await server.control.zcard('many:reservations')).toBe(MAX_OPEN + 1);
  });

  it('adds all that was used of one whose members are gone, as they were given back, and ends no record', async () => {
    const opened = opening('one', uses);
    await change(opened);
    await server.control.zrem('k:reservations', 'c3:0:one');
    await server.control.set('k', 1);
    const before = 'open one\n3:3';
    const ended = ending(opened, [3], { before, hits: [5] });
    expect(await change({ ...ended, key: 'other', before: undefined })).toEqual({ outcome: 'expired' });
    expect(await change(ended)).toMatchObject({ outcome: 'done', steps: [{ count: 6, added: 5 }] });
    expect(await server.control.mget('one', 'other', 'k')).toEqual(['ended\n6:5', null, '6']);
  });

  it('counts from what another program has written, and gives back no more than that', async () => {
    const twice = opening('one', [...uses, ...uses]);
    await change(twice);
    await server.control.set('k', 1);
    const before = 'open one\n3:3,6:3';
    const ended = await change(ending(twice, [3, 3], { before, hits: [0, 5] }));
    expect(ended).toMatchObject({
      outcome: 'done',
      steps: [
        { count: 0, added: -1 },
        { count: 2, added: 2 },
      ],
    });
    expect(await server.control.get('k')).toBe('2');
    await server.control.set('k', -3);
    const raised = await change(
      opening('two', [
        { key: 'k', hits: 0 },
        { key: 'k', hits: 2 },
      ]),
    );
    expect(raised).toMatchObject({
      outcome: 'done',
      steps: [
        { count: 0, added: 0 },
        { count: 0, added: 2 },
      ],
    });
    expect(await server.control.get('k')).toBe('-1');
  });

  it('fails with the error of any key that holds something else, and changes nothing', async () => {
    await server.control.rpush('list', 'x');
    await server.control.mset('text', 'x', 'some:reservations', 'x');
    const failed = { code: 'store_failed', message: expect.stringContaining('another type') };
    await expect(change({ ...opening('list', uses), key: 'list' })).rejects.toMatchObject(failed);
    await expect(change(opening('one', [...uses, { key: 'list', hits: 1 }]))).rejects.toMatchObject(failed);
    await expect(change(opening('one', [...uses, { key: 'some', hits: 1 }]))).rejects.toMatchObject(failed);
    const notAnInteger = { code: 'store_failed', message: expect.stringContaining('not an integer') };
    await expect(change(opening('one', [...uses, { key: 'text', hits: 1 }]))).rejects.toMatchObject(notAnInteger);
    const opened = opening('one', [{ key: 'some', hits: 1 }]);
    await expect(change(ending(opened, [1], { before: undefined, hits: [1] }))).rejects.toMatchObject(failed);
    await server.control.zadd('text:reservations', now - 1, 'c1:0:expired');
    await expect(change(opening('one', [{ key: 'text', hits: 1 }]))).rejects.toMatchObject(notAnInteger);
    expect(await server.control.mget('one', 'k', 'text')).toEqual([null, null, 'x']);
    expect(await server.control.zcard('text:reservations')).toBe(1);
    expect(await counters.readCounter(counterOf('k'))).toMatchObject({ count: 0 });
  });

  it('changes nothing when the server has no memory', async () => {
    await server.control.config('SET', 'maxmemory', '1');
    await expect(change(opening('one', uses))).rejects.toMatchObject({
      message: expect.stringContaining('out of memory'),
    });
    await server.control.config('SET', 'maxmemory', '0');
    expect(await server.control.keys('*')).toEqual([]);
  });
});

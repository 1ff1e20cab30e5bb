import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { Caller, STARTS_AT } from '../counters/reservation-caller';
import { connected, instance } from './options';

// Reservations on one Redis, also with instances before algorithms had any: what their scripts do to what is reserved.

const [OLDER_RESERVATION, OLDER_COUNT] = ['reservation', 'count'].map((name) =>
  readFileSync(join(__dirname, `older-${name}-script.lua`), 'utf8'),
) as [string, string];
const CANCEL = { ttl: 1_000, onExpiry: 'cancel' } as const;
const USER = 'p_d_user_x_1700000040';

let server: RedisProcess;
beforeAll(async () => {
  server = await RedisProcess.start();
});
beforeEach(() => server.control.flushall());
afterAll(() => server[Symbol.asyncDispose]());

/** A new instance at the beginning of a minute, and its time. */
async function newer(): Promise<Caller> {
  const clock = { now: () => STARTS_AT };
  const counters = await connected(instance(server.address), { now: () => clock.now() * 1000 });
  const caller = new Caller(counters.reservations, 'p_');
  clock.now = () => caller.now;
  caller.now += 5_000;
  return caller;
}

interface OlderStep {
  readonly now: number;
  readonly hits: number;
  readonly member: string;
  /** The record before and after. */
  readonly record?: readonly [before: string, after: string];
  /** 0: it ends one. */
  readonly ttl?: number;
}

/** An older instance opens or ends a reservation on the counter {@link USER}. */
function changeOlder(id: string, { now, hits, member, record = ['', 'open'], ttl = 1_000 }: OlderStep) {
  const expires = ttl === 0 ? 0 : now + ttl;
  const step = [hits, 90, 60, 100, ttl === 0 ? 'never' : 'alone', member, 120];
  const change = JSON.stringify([String(now), '120000', String(expires), 0, 10_000, 100, step]);
  const keys = [`p_weir:reservation:${id}`, USER, `${USER}:reservations`];
  return server.control.eval(OLDER_RESERVATION, keys.length, ...keys, ...record, change);
}

describe('an older instance', () => {
  it('counts what is reserved in fixed windows, and each gives back what the other has left', async () => {
    const caller = await newer();
    expect(await caller.reserve('new', [{ name: 'user', hits: 60 }], CANCEL)).toBe('reserved true 40');
    expect(await changeOlder('old', { now: caller.now, hits: 41, member: 'c:0:old' })).toEqual(['denied', 101, 0]);
    expect(await changeOlder('old', { now: caller.now, hits: 30, member: 'c:0:old' })).toEqual(['done', 90, 30]);
    caller.now += 1_000;
    expect(await changeOlder('later', { now: caller.now, hits: 5, member: 'c:0:later' })).toEqual(['done', 5, 5]);
    expect(await caller.settle('new', 40)).toBe('settled 60>40:40');
    caller.now += 1_000;
    expect(await caller.reserve('all', [{ name: 'user', hits: 60 }])).toBe('reserved true 0');
  });

  it('settles what is reserved in fixed windows, once', async () => {
    const caller = await newer();
    await caller.reserve('r', [{ name: 'user', hits: 60 }], CANCEL);
    const before = (await server.control.get('p_weir:reservation:r'))!;
    const [made, steps] = before.split('\n') as [string, string];
    const ended = {
      ...(JSON.parse(made) as object),
      state: 'settled',
      ended: [{ reserved: 60, hits: 10 }],
      steps: [0],
    };
    const record = [before, `${JSON.stringify(ended)}\n${steps}`] as const;
    const change = { now: caller.now, hits: -50, member: 'c60:0:r', record, ttl: 0 };
    expect(await changeOlder('r', change)).toEqual(['done', 10, -50]);
    expect(await caller.settle('r', 10)).toBe('settled 60>10:-50');
    expect(await caller.settle('r', 11)).toBe('reservation_conflict');
    expect(await caller.reserve('all', [{ name: 'user', hits: 90 }])).toBe('reserved true 0');
  });

  it.each([
    ['slid100', 60, '[["sliding_window",100,0,1,60000,140,130]]', '[1,0,1,5,1,[1],1,1,"1",true,[1],[0]]'],
    [
      'bucket100',
      36_000_000,
      '[["token_bucket",60000000,0,1,1,81,71]]',
      '[1,0,1,5,1,[1],1,600000,"600000",false,[600000],[0]]',
    ],
  ])('counts calls of a %s next to what is reserved', async (name, held, limit, call) => {
    const caller = await newer();
    expect(await caller.reserve('r', [{ name, hits: 60 }], CANCEL)).toBe('reserved true 40');
    const key = (await server.control.keys(`*${name}*`)).find((each) => !each.includes(':'));
    const keys = name === 'slid100' ? [0, 1].map((odd) => key!.replace(/\d$/, String(odd))) : [key!];
    const found = await server.control.eval(OLDER_COUNT, keys.length, ...keys, call, limit, String(caller.now * 1000));
    expect((found as readonly number[])[0]).toBe(held);
    expect(await caller.cancel('r')).toBe('cancelled 60>0:-60');
    expect(await caller.reserve('all', [{ name, hits: 99 }])).toBe('reserved true 0');
  });
});

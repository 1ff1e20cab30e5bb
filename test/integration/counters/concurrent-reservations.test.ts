import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import { Code } from '../../../src/limiter/verdict';
import type { OnExpiry } from '../../../src/streams/ports/reservations';
import fc from '../../support/data/properties';
import { descriptor } from '../../support/data/requests';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { connected, instance } from '../kvstore/options';
import { Caller, RULES, STARTS_AT } from './reservation-caller';
import { Service } from './rule-scenarios';

const opened: MemoryCounters[] = [];
afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));

let prefixes = 0;

/** How many are open at a time, without a store: an expired one is free at its millisecond. */
class Model {
  now = STARTS_AT;
  readonly #open = new Map<string, number>();
  readonly #made = new Set<string>();

  constructor(readonly most: number) {}

  get free(): number {
    return this.most - [...this.#open.values()].filter((expiresAt) => expiresAt > this.now).length;
  }

  reserve(id: string, ttl: number): string | undefined {
    if (this.#made.has(id)) return undefined;
    if (this.free === 0) return 'denied false 0';
    this.#made.add(id);
    this.#open.set(id, this.now + ttl);
    return `reserved true ${this.free}`;
  }

  end(id: string): void {
    this.#open.delete(id);
  }
}

type Step =
  | { kind: 'reserve'; id: string; hits: number; ttl: number; onExpiry: OnExpiry }
  | { kind: 'settle' | 'cancel'; id: string }
  | { kind: 'ask'; hits: number }
  | { kind: 'pass'; milliseconds: number };

const ID = fc.integer({ min: 0, max: 9 }).map((number) => `r${number}`);
const HITS = fc.constantFrom(0, 1, 7, 2 ** 40);
const STEP: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    ...{ kind: fc.constant('reserve' as const), id: ID, hits: HITS, ttl: fc.constantFrom(1_000, 60_000) },
    onExpiry: fc.constantFrom<OnExpiry>('settle', 'cancel'),
  }),
  fc.record({ kind: fc.constantFrom('settle' as const, 'cancel' as const), id: ID }),
  fc.record({ kind: fc.constant('ask' as const), hits: HITS }),
  fc.record({ kind: fc.constant('pass' as const), milliseconds: fc.constantFrom(1, 999, 1_000, 30_000) }),
);

describe.each(['memory', 'Redis', 'Redis Cluster'] as const)('reservations at a time in %s', (kind) => {
  let server: RedisProcess | RedisCluster | undefined;
  beforeAll(async () => {
    if (kind === 'Redis') server = await RedisProcess.start();
    if (kind === 'Redis Cluster') server = await RedisCluster.start();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  /** Two callers of one store, and what asks. The time is that of the first caller. */
  async function setUp() {
    const clock = { now: () => STARTS_AT };
    let memory: MemoryCounters | undefined;
    if (server === undefined) {
      memory = new MemoryCounters({ maxKeys: 1_000, now: () => clock.now() });
      opened.push(memory);
    }
    const type = server instanceof RedisCluster ? 'cluster' : 'single';
    const url = server instanceof RedisCluster ? server.url : server?.address;
    const kvstore =
      url === undefined ? undefined : await connected(instance(url, { type }), { now: () => clock.now() * 1000 });
    const store = memory ?? kvstore!.reservations;
    const prefix = `p${(prefixes += 1)}_`;
    const [one, other] = [new Caller(store, prefix), new Caller(store, prefix)];
    clock.now = () => one.now;
    const service = new Service(
      RULES,
      memory ?? kvstore!,
      { cacheKeyPrefix: prefix, localCacheBytes: 10_000 },
      () => one.now,
    );
    async function ask(hits?: number, name = 'three'): Promise<string> {
      const sent = hits === undefined ? {} : { hitsAddend: Math.abs(hits), isNegativeHits: hits < 0 };
      const { statuses } = await service.decide('d', [descriptor(`${name}=x`, sent)]);
      const { code, limitRemaining, secondsUntilReset, currentLimit } = statuses[0]!;
      expect([currentLimit?.unit?.number, secondsUntilReset]).toEqual(name === 'three' ? [0, 0] : expect.anything());
      return `${code === Code.OK ? 'OK' : 'OVER'} ${limitRemaining}`;
    }
    function pass(milliseconds: number): void {
      one.now += milliseconds;
      other.now = one.now;
    }
    return { one, other, ask, pass, service };
  }

  it('are three, whatever their hits are, until one ends or expires', async () => {
    const { one, other, ask, pass } = await setUp();
    expect(await ask()).toBe('OK 3');
    expect(await one.reserve('a', [{ name: 'three', hits: 60 }])).toBe('reserved true 2');
    expect(await other.reserve('b', [{ name: 'three', hits: 0 }])).toBe('reserved true 1');
    function third(caller: Caller): Promise<string> {
      return caller.reserve('c', [{ name: 'three', hits: 9 }], { ttl: 1_000, onExpiry: 'cancel' });
    }
    expect([await third(one), await third(other)]).toEqual(['reserved true 0', 'reserved true 0']);
    expect(await other.reserve('d', [{ name: 'three', hits: 1 }])).toBe('denied false 0');
    expect([await ask(), await ask(0), await ask(7), await ask(-7)]).toEqual(['OVER 0', 'OVER 0', 'OVER 0', 'OK 0']);
    expect(await other.reserve('a', [{ name: 'three', hits: 60 }])).toBe('reserved true 2');
    pass(999);
    expect(await ask()).toBe('OVER 0');
    pass(1);
    expect(await ask()).toBe('OK 1');
    expect(await other.reserve('d', [{ name: 'three', hits: 1 }])).toBe('reserved true 0');
    expect(await one.settle('a', 99)).toBe('settled 1>99:0');
    expect(await one.settle('a', 99)).toBe('settled 1>99:0');
    expect(await ask()).toBe('OK 1');
    expect(await other.cancel('b')).toBe('cancelled 1>0:0');
    expect(await one.settle('c', 1)).toBe('settled 1>1:0');
    expect(await ask()).toBe('OK 2');
  });

  it('are counted beside hits, of which a settlement says what it has changed', async () => {
    const { one, other, ask } = await setUp();
    expect(await one.reserve('a', [{ name: 'jobs', hits: 60 }])).toBe('reserved true 1');
    expect(await other.reserve('over', [{ name: 'jobs', hits: 60 }])).toBe('denied false 0');
    expect(await ask(5, 'jobs')).toBe('OK 1');
    expect(await other.reserve('b', [{ name: 'jobs', hits: 5 }])).toBe('reserved true 0');
    expect(await other.reserve('c', [{ name: 'jobs', hits: 1 }])).toBe('denied false 0');
    expect(await one.settle('a', 20)).toBe('settled 60>20:-40');
    expect(await other.reserve('c', [{ name: 'jobs', hits: 1 }])).toBe('reserved true 0');
    expect(await one.cancel('b')).toBe('cancelled 5>0:-5');
    expect(await ask(1, 'jobs')).toBe('OK 1');
  });

  it('are not denied in shadow mode', async () => {
    const { one, ask } = await setUp();
    for (const id of ['a', 'b']) expect(await one.reserve(id, [{ name: 'watched', hits: 1 }])).toBe('reserved true 0');
    expect(await ask(1, 'watched')).toBe('OK 0');
    expect(await one.settle('a', 1)).toBe('settled 1>1:0');
    expect(await ask(1, 'watched')).toBe('OK 0');
    expect(await one.settle('b', 1)).toBe('settled 1>1:0');
    expect(await ask(1, 'watched')).toBe('OK 1');
  });

  it('are free for one of many that ask at the same time', async () => {
    const { one, other } = await setUp();
    const made = Array.from({ length: 20 }, (_, index) => {
      return (index % 2 === 0 ? one : other).reserve(`r${index}`, [{ name: 'three', hits: 1 }]);
    });
    expect((await Promise.all(made)).filter((answer) => answer.startsWith('reserved'))).toHaveLength(3);
  });

  it('do as a model does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 30 }), async (steps) => {
        const { one, other, ask, pass } = await setUp();
        const model = new Model(3);
        for (const [index, step] of steps.entries()) {
          const caller = index % 2 === 0 ? one : other;
          if (step.kind === 'pass') {
            pass(step.milliseconds);
            model.now = one.now;
          } else if (step.kind === 'ask') await ask(step.hits);
          else if (step.kind === 'reserve') {
            const expected = model.reserve(step.id, step.ttl);
            const answer = await caller.reserve(step.id, [{ name: 'three', hits: step.hits }], step);
            if (expected !== undefined) expect(answer).toBe(expected);
          } else {
            if (step.kind === 'settle') await caller.settle(step.id, 5);
            else await caller.cancel(step.id);
            model.end(step.id);
          }
          expect(await ask()).toBe(`${model.free > 0 ? 'OK' : 'OVER'} ${model.free}`);
        }
      }),
      { numRuns: kind === 'memory' ? 200 : 30 },
    );
  });
});

it('deny the one after 10,000 in memory, which is no error', async () => {
  const memory = new MemoryCounters({ maxKeys: 1_000, now: () => STARTS_AT });
  opened.push(memory);
  const caller = new Caller(memory, 'p_');
  const answers = new Set<string>();
  const uses = Array.from({ length: 16 }, () => ({ name: 'most', hits: 1 }));
  for (let index = 0; index < 10_000 / uses.length; index += 1) {
    answers.add((await caller.reserve(`r${index}`, uses)).split(' ')[0]!);
  }
  expect([...answers]).toEqual(['reserved']);
  expect(await caller.reserve('more', [{ name: 'most', hits: 1 }])).toBe('denied false 0');
});

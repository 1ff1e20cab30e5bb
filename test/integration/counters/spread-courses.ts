import { DecisionError } from '../../../src/counting/decision-error';
import type { CommandRunner } from '../../../src/sinks/counters/kvstore/administration';
import type { SendCommand } from '../../../src/sinks/counters/kvstore/commands';
import type { Store } from '../../../src/sinks/counters/kvstore/store-client';
import { kvstoreReservations } from '../../../src/sinks/counters/kvstore/reservations';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { until } from '../../support/waiting/until';
import { connectedStore, instance } from '../kvstore/options';
import { Caller, DUE, NAMES } from './reservation-caller';

/**
 * How a process or a server fails. In the first two cases it never answers, in the last one when the other call has
 * been answered.
 */
export const FAILURES = [
  'before the server has it',
  'before it has the reply',
  'as the server fails',
  'as the reply is lost',
  'for long',
] as const;
const IS_ERROR = { 'as the server fails': true, 'as the reply is lost': true } as Readonly<Record<string, boolean>>;

/** A real store that fails once: at the step of this number. */
export class FailingStore implements CommandRunner {
  steps = 0;
  hasFailed = false;
  goOn: () => void = () => undefined;

  constructor(
    readonly store: CommandRunner,
    readonly failsAt: number,
    readonly how: (typeof FAILURES)[number],
  ) {}

  async run<T>(key: string, commands: (send: SendCommand) => Promise<T>): Promise<T> {
    this.steps += 1;
    if (this.hasFailed || this.steps <= this.failsAt) return this.store.run(key, commands);
    if (this.how === 'before it has the reply' || this.how === 'as the reply is lost') {
      await this.store.run(key, commands);
    }
    this.hasFailed = true;
    if (IS_ERROR[this.how]) throw new DecisionError('store_failed', 'a test');
    await new Promise<void>((resolve) => (this.goOn = resolve));
    if (this.how === 'for long') return this.store.run(key, commands);
    return new Promise(() => undefined);
  }
}

interface Course {
  readonly before?: (caller: Caller) => Promise<unknown>;
  readonly call: (caller: Caller) => Promise<string>;
}

const USES = [
  { name: 'user', hits: 40 },
  { name: 'team', hits: 60 },
  { name: 'user', hits: 9 },
  { name: 'tried', hits: 20 },
];
export function reserve(caller: Caller): Promise<string> {
  return caller.reserve('r', USES, { ttl: 60_000 });
}
async function reserveAndWait(caller: Caller): Promise<void> {
  await reserve(caller);
  caller.now += 6_000;
}
const COURSES: Readonly<Record<string, Course>> = {
  'a reservation': { call: reserve },
  'a reservation that is denied': { call: (caller) => caller.reserve('r', [...USES, { name: 'user', hits: 52 }]) },
  'a settlement': { before: reserve, call: (caller) => caller.settle('r', [50, 10, 9, 21]) },
  'a cancellation': { before: reserve, call: (caller) => caller.cancel('r') },
  'a settlement after the windows': { before: reserveAndWait, call: (caller) => caller.settle('r', [70, 10, 19, 25]) },
};

export let cluster: RedisCluster;
export let store: Store;
beforeAll(async () => {
  cluster = await RedisCluster.start();
});
beforeEach(async () => {
  store = await connectedStore(instance(cluster.url, { type: 'cluster' }));
});
afterEach(() => store.close());
afterAll(() => cluster[Symbol.asyncDispose]());

let prefixes = 0;
export function callerOn(runner: CommandRunner, prefix = `s${(prefixes += 1)}_`): Caller {
  const more = { ...DUE, records: runner, isCluster: true, jitter: 1, now: () => caller.now * 1000 };
  const caller: Caller = new Caller(kvstoreReservations({ storeOf: () => runner, ...more }), prefix);
  return caller;
}

let reads = 0;
/** What is left of every limit. */
export function leftBy(caller: Caller): Promise<string> {
  return caller.reserve(
    `read${(reads += 1)}`,
    NAMES.map((name) => ({ name, hits: 0 })),
  );
}

function outcomeOf(answer: string): string {
  return answer.split(' ')[0]!;
}

/** The rows of `npm test`: each failure with one course, and each course with one failure. */
function isFast(course: string, how: string): boolean {
  return course === 'a settlement' || how === 'as the reply is lost';
}

/** Plays each course with each failure of a suite, at each of its steps. */
export function courseTests(suite: 'fast' | 'long'): void {
  const rows = Object.keys(COURSES)
    .flatMap((course) => FAILURES.map((how) => [course, how] as const))
    .filter((row) => isFast(...row) === (suite === 'fast'));
  it.each(rows)(
    '%s on a cluster comes to the same when it stops at any step %s, and is called again',
    async (course, how) => {
      const { before, call } = COURSES[course]!;
      const counting = new FailingStore(store, Infinity, how);
      const reference = callerOn(counting);
      await before?.(reference);
      const done = counting.steps;
      const [answer, steps] = [await call(reference), counting.steps - done];
      const left = await leftBy(reference);
      expect(steps).toBeGreaterThan(3);

      async function failAt(step: number): Promise<unknown> {
        const other = callerOn(store);
        await before?.(other);
        const failing = new FailingStore(store, step, how);
        const caller = callerOn(failing, other.cacheKeyPrefix);
        caller.now = other.now;
        const first = call(caller);
        await until('it fails', () => failing.hasFailed);
        if (IS_ERROR[how]) await first;
        const second = await call(IS_ERROR[how] ? caller : other);
        failing.goOn();
        // It may have counted again before it was denied, so that less seems to be left.
        if (how === 'for long') expect([step, outcomeOf(await first)]).toEqual([step, outcomeOf(answer)]);
        return [step, second, await leftBy(other)];
      }
      const all = Array.from({ length: steps }, (_each, step) => step);
      expect(await Promise.all(all.map(failAt))).toEqual(all.map((step) => [step, answer, left]));
    },
  );
}

import { LocalCounts } from '../../../src/limiter/local-counts';
import type { FailurePolicy } from '../../../src/rules/rule-config';
import { Code } from '../../../src/limiter/verdict';
import { Statistics } from '../../../src/statistics/statistics';
import { request } from '../../support/data/requests';
import { limit, rulesetOf } from '../../support/data/rules';
import { serverStates } from '../../support/data/server-states';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { connected, instance } from '../kvstore/options';
import { Instance } from './instance';

const LIMIT = 1_000;
/** STORE_DECISION_TIMEOUT */
const TIMEOUT = 500;

let redis: RedisProcess;
beforeAll(async () => {
  redis = await RedisProcess.start();
});
afterEach(async () => {
  for (const one of instances.splice(0)) one[Symbol.dispose]();
  redis.signal('SIGCONT');
  await redis.control.flushall();
});
afterAll(() => redis[Symbol.asyncDispose]());

const instances: Instance[] = [];
let keys = 0;

/** An instance that holds hits of a key whose limit has this policy. The clock of its leases stands still. */
async function leasing(onStoreFailure: FailurePolicy, share = 1) {
  const key = `key-${(keys += 1)}`;
  const clock = { now: 0 };
  const counters = await connected(instance(redis.address, { timeout: TIMEOUT }), {
    servers: serverStates({ failures: 1 }),
  });
  const local = new LocalCounts({
    ...{ share: () => share, reconciles: false, serverOf: (counter) => counters.laneOf(counter) },
    dropped: new Statistics(1).counter('dropped'),
  });
  const rateLimit = limit(LIMIT, 'YEAR', { lease: true });
  const one = new Instance({
    ...{ counters, local, ruleset: rulesetOf('d', { key, rateLimit, onStoreFailure }), now: () => clock.now },
    more: { timeouts: { ofCalls: TIMEOUT } },
  });
  instances.push(one);
  function call(): Promise<string> {
    return new Promise((outcome) => {
      one.decide(request('d', [`${key}=v`]), {
        verdict: ({ overallCode }) => outcome(overallCode === Code.OK ? 'OK' : 'OVER'),
        error: ({ code }) => outcome(code),
      });
    });
  }
  let used = 0;
  // Two in each window of the pipeline, 200 a second, so that it leases what it uses in 100 ms.
  while (one.held < 10 || used < 200) {
    used += 2;
    expect(await Promise.all([call(), call()])).toEqual(['OK', 'OK']);
    clock.now += 10;
  }
  return { call, clock, used, one };
}

/** How many calls pass, one after the other, until one does not; and what that one is answered. */
async function passing(call: () => Promise<string>) {
  for (let passed = 0; ; passed += 1) {
    const outcome = await call();
    if (outcome !== 'OK') return [passed, outcome];
  }
}

describe('while the store does not answer', () => {
  it.each([
    ['deny', 'OVER'],
    ['error', 'store_timeout'],
  ] as const)('calls pass by what is held, and then the policy %s answers', async (policy, outcome) => {
    const { call, one } = await leasing(policy);
    const { held } = one;
    redis.signal('SIGSTOP');
    expect(await passing(call)).toEqual([held, outcome]);
  });

  it('what is held is of no use when its time is over', async () => {
    const { call, one, clock } = await leasing('deny');
    expect(one.held).toBeGreaterThan(0);
    redis.signal('SIGSTOP');
    expect(await call()).toBe('OK');
    clock.now += 250;
    expect(await call()).toBe('OVER');
  });

  it.each([1, 4])(
    '`local` divides what is left without what is held by %d, so that no more pass than the limit',
    async (share) => {
      const { call, one, used } = await leasing('local', share);
      const { held } = one;
      redis.signal('SIGSTOP');
      expect(await passing(call)).toEqual([held + Math.ceil((LIMIT - used - held) / share), 'OVER']);
    },
  );
});

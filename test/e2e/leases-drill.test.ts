import { RuleFolder } from '../support/data/rule-folder';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { WeirProcess } from '../support/processes/weir-process';
import { Callers } from './workers/callers';

const RULES = `domain: shop
descriptors:
  - { key: busy, rate_limit: { unit: year, requests_per_unit: 1000000, lease: true } }
`;

it('an instance with leases is replaced under load by one with LEASES=off, and Redis has each call that has passed', async () => {
  await using redis = await RedisProcess.start();
  await using rules = await RuleFolder.with({ 'shop.yaml': RULES });
  const env = { ...rules.env, BACKEND_TYPE: 'redis', REDIS_URL: redis.address };
  await using leasing = await WeirProcess.start({ env });
  await using exact = await WeirProcess.start({ env: { ...env, LEASES: 'off' } });
  await using one = await Callers.call(leasing, 'busy=a', 2);
  await using other = await Callers.call(exact, 'busy=a', 2);
  await one.load.more(3_000, leasing);
  expect((await leasing.statistics()).get('ratelimit.lease.calls_saved')).toBeGreaterThan(500);
  leasing.signal('SIGTERM');
  expect(await leasing.exited).toBe(0);
  await one.load[Symbol.asyncDispose]();
  await other.load.more(1_000, exact);
  await other.load[Symbol.asyncDispose]();
  expect(other.load.failures).toEqual([]);
  const [key] = await redis.control.keys('*busy_a*');
  const count = Number(await redis.control.get(key!));
  const passed = one.load.answered + other.load.answered;
  // A call that had no answer because of the shutdown may have been counted.
  expect(count).toBeGreaterThanOrEqual(passed);
  expect(count).toBeLessThanOrEqual(passed + one.load.failures.length);
});

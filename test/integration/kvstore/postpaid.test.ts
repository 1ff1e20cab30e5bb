import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { descriptor } from '../../support/data/requests';
import { limit, rulesetOf } from '../../support/data/rules';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { Service } from '../counters/rule-scenarios';
import { clock } from '../counters/scenarios';
import { until } from '../../support/waiting/until';
import { connected, instance } from './options';

// Postpaid limits on one Redis, also with instances before limits could be postpaid: what their script does to what is
// overdrawn.

const OLDER_SCRIPT = readFileSync(join(__dirname, 'older-count-script.lua'), 'utf8');
/** What older instances send for a call of one hit, with a limit of ten a minute. */
const OLDER_CALLS = {
  sliding_window: ['[1,0,1,5,1,[1],1,1,"1",true,[1],[0]]', '[["sliding_window",10,0,1,60000,140,130]]'],
  token_bucket: ['[1,0,1,5,1,[1],1,6000000,"6000000",false,[6000000],[0]]', '[["token_bucket",60000000,0,1,1,81,71]]'],
} as const;

let server: RedisProcess;
beforeAll(async () => {
  server = await RedisProcess.start();
});
afterEach(() => server.control.flushall());
afterAll(() => server[Symbol.asyncDispose]());

/** A call of one hit as an older instance makes it. Returns the state before it. */
function callOlder(algorithm: keyof typeof OLDER_CALLS, ...keys: readonly string[]): Promise<readonly number[]> {
  const args = [...OLDER_CALLS[algorithm], String(clock.now * 1000)];
  return server.control.eval(OLDER_SCRIPT, keys.length, ...keys, ...args) as Promise<readonly number[]>;
}

/** An instance with a postpaid limit of ten a minute, to which 600 hits are reported. */
async function overdrawn(algorithm: keyof typeof OLDER_CALLS) {
  const counters = await connected(instance(server.address), {
    expirationJitterMaxSeconds: 0,
    now: () => clock.now * 1000,
  });
  const rule = { key: 'k', rateLimit: limit(10, 'MINUTE', { algorithm, postpaid: true }) };
  const service = new Service(rulesetOf('shop', rule), counters);
  await service.decide('shop', [descriptor('k=x', { hitsAddend: 600 })]);
  async function reset(): Promise<number | undefined> {
    const { statuses } = await service.decide('shop', ['k=x']);
    return statuses[0]!.code === 2 ? statuses[0]!.secondsUntilReset : 0;
  }
  return { reset, [Symbol.dispose]: () => service[Symbol.dispose]() };
}

it('an older instance denies calls of a sliding window that is overdrawn, and leaves the debt as it is', async () => {
  using postpaid = await overdrawn('sliding_window');
  const [before, keys] = [await postpaid.reset(), await server.control.keys('*')];
  expect(before).toBeGreaterThan(50);
  const body = '{_shop_k_x_}sliding_window_60';
  const [current] = await callOlder('sliding_window', `${body}_0`, `${body}_1`);
  expect([current, await postpaid.reset(), await server.control.keys('*')]).toEqual([600, before, keys]);
});

it('an older instance does not touch a bucket in debt, which has a key that it does not know', async () => {
  using postpaid = await overdrawn('token_bucket');
  expect(await postpaid.reset()).toBe(3_600 + 6 - 60);
  expect(await callOlder('token_bucket', '{_shop_k_x_}token_bucket_60')).toEqual([0, 0, clock.now * 1000]);
  expect(await postpaid.reset()).toBe(3_600 + 6 - 60);
  // On the same key, it would cut the debt to a burst.
  await callOlder('token_bucket', '{_shop_k_x_}postpaid_bucket_60');
  expect(await postpaid.reset()).toBe(6);
});

it('counts each report once whose caller has given up while the store stood still', async () => {
  const counters = await connected(instance(server.address));
  using service = new Service(
    rulesetOf('shop', { key: 'k', rateLimit: limit(1_000, 'YEAR', { postpaid: true }) }),
    counters,
    {},
    Date.now,
  );
  await service.decide('shop', ['k=x']);
  await server.control.call('CLIENT', 'PAUSE', '400', 'ALL');
  const [reported, asked] = [[descriptor('k=x', { hitsAddend: 3 })], ['k=x']];
  const pending = [];
  for (let call = 0; call < 50; call += 1) {
    pending.push(service.begin('shop', reported), service.begin('shop', asked));
    await nextTurn();
  }
  for (const each of pending) each.cancel('deadline_exceeded');
  await until('the reports are counted', async () => {
    const { statuses } = await service.decide('shop', ['k=x']);
    return statuses[0]!.limitRemaining === 850;
  });
  expect(service.statistics.rule('shop.k').totalHits).toBe(150);
});

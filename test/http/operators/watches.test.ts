import { readWatch } from '../../../src/http/operators/read-report';
import { RecentConfigurations } from '../../../src/operators/configurations';
import { FleetWatched, MOST_WATCHES, WATCHED_SECONDS, Watches } from '../../../src/operators/fleet/watches';
import { rulesetOf } from '../../support/data/rules';
import { heapAfterCollection } from '../../support/processes/collect-garbage';
import { ServedApi } from './served-api';

const TOKEN = 'token-of-these-tests';

function pathOf(descriptor: string, domain = 'shop'): string {
  return `/api/watches?${String(new URLSearchParams({ domain, descriptor }))}`;
}

/** A text of its own, as those that were received: a template would share the memory of what it repeats. */
function long(number: number): string {
  return Buffer.from(String(number).padEnd(1_000, 'x')).toString();
}

function names(from: number) {
  return { count: 9, names: Array.from({ length: 5 }, (_, index) => long(from + index)) };
}

/** The most that instances keep of loads, and of callers that are watched on 100 instances. */
async function watchesAndLoads(): Promise<readonly [RecentConfigurations, readonly FleetWatched[]]> {
  const ruleset = rulesetOf('shop');
  const configurations = new RecentConfigurations();
  for (let load = 0; load < 60; load += 1) {
    const changes = {
      domainsAdded: names(load),
      domainsRemoved: names(load + 100),
      rulesAdded: names(load + 200),
      rulesRemoved: names(load + 300),
      rulesChanged: names(load + 400),
    };
    configurations.compared({ ruleset, origin: { source: long(load), version: long(load) } }, changes);
  }
  const watches = new Watches(undefined, () => undefined);
  const fleet: FleetWatched[] = [];
  for (let number = 0; number < MOST_WATCHES; number += 1) {
    const caller = { domain: 'shop', entries: [{ key: 'user', value: long(number) }] };
    watches.read(caller);
    const watched = new FleetWatched(caller);
    fleet.push(watched);
    const counts = { times: [Math.floor(Date.now() / 1_000)], calls: [1], denied: [1] };
    for (let peer = 0; peer < 100; peer += 1) await watched.takeFrom(`10.0.0.${peer}:6070`, async () => counts);
  }
  return [configurations, fleet];
}

it('the memory of watches and loads is at most 2 MB, however many and long they are', async () => {
  function memory(): number {
    return heapAfterCollection() + process.memoryUsage().arrayBuffers;
  }
  // What V8 compiles and Node caches at the first time is not theirs; nothing here holds the result.
  await watchesAndLoads().then(() => undefined);
  const before = memory();
  const [configurations, fleet] = await watchesAndLoads();
  const known = memory() - before;
  expect(configurations.loads).toHaveLength(50);
  expect(known).toBeGreaterThan(500_000);
  expect(known).toBeLessThan(2_000_000);
  expect(fleet).toHaveLength(MOST_WATCHES);
});

it('an operator who watches ever more callers, with long names, in wrong words, or with a wrong token', async () => {
  await using api = await ServedApi.start({}, () => TOKEN);
  async function statusOf(path: string, token = TOKEN): Promise<number> {
    return (await api.send(path, { headers: { Authorization: `Bearer ${token}` } })).status;
  }
  expect(await statusOf(pathOf('user=ann'), 'another-token-of-these-tests')).toBe(401);
  expect((await api.send(pathOf('user=ann'))).status).toBe(401);
  for (const wrong of ['user', '{"entries":1}', '', `user=${'x'.repeat(1_020)}`, `user=${'ā'.repeat(1_020)}`]) {
    expect(await statusOf(pathOf(wrong))).toBe(400);
  }
  expect(await statusOf(`${pathOf('user=ann')}&own=1`)).toBe(400);
  expect(await statusOf(pathOf(`user=${'ā'.repeat(1_016)}`))).toBe(200);
  for (let number = 1; number < MOST_WATCHES; number += 1) expect(await statusOf(pathOf(`user=${number}`))).toBe(200);
  expect(await statusOf(pathOf('user=more'))).toBe(429);
  expect(await statusOf(pathOf('user=1'))).toBe(200);
});

it('a peer that answers with wrong, long or endless counts of a caller', () => {
  const ones = Array.from({ length: 10_000 }, () => 1);
  const { times, calls, denied } = readWatch(JSON.stringify({ times: ones, calls: ones, denied: [], more: [ones] }));
  expect([times.length, calls.length, denied.length]).toEqual([WATCHED_SECONDS, WATCHED_SECONDS, 0]);
  const wrong = [-1, 1e300, '1', null, [1], {}].map((each) => ({ times: [1], calls: [each], denied: [] }));
  for (const answer of [...wrong, {}, [], null, { times: [], calls: [] }]) {
    expect(() => readWatch(JSON.stringify(answer))).toThrow('its answer is not that of an instance: ');
  }
});

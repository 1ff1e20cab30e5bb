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

it('the memory of watches and loads is at most 2 MB, however many and long they are', async () => {
  function memory(): number {
    return heapAfterCollection() + process.memoryUsage().arrayBuffers;
  }
  const long = 'x'.repeat(1_000);
  const rules = rulesetOf('shop');
  const before = memory();
  const configurations = new RecentConfigurations();
  const names = { count: 9, names: Array.from({ length: 5 }, (_, index) => `${index}${long}`) };
  const changes = {
    domainsAdded: names,
    domainsRemoved: names,
    rulesAdded: names,
    rulesRemoved: names,
    rulesChanged: names,
  };
  for (let load = 0; load < 60; load += 1) {
    configurations.compared(
      { ruleset: rules, origin: { source: `${load}${long}`, version: `${load}${long}` } },
      changes,
    );
  }
  const watches = new Watches(undefined, () => undefined);
  const fleet: FleetWatched[] = [];
  for (let number = 0; number < MOST_WATCHES; number += 1) {
    const caller = { domain: 'shop', entries: [{ key: 'user', value: `${number}${long}` }] };
    watches.read(caller);
    const watched = new FleetWatched(caller);
    fleet.push(watched);
    const counts = { times: [Math.floor(Date.now() / 1_000)], calls: [1], denied: [1] };
    for (let peer = 0; peer < 100; peer += 1) await watched.takeFrom(`10.0.0.${peer}:6070`, async () => counts);
  }
  const known = memory() - before;
  expect(configurations.loads).toHaveLength(50);
  expect(known).toBeGreaterThan(100_000);
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

import { hostname } from 'node:os';
import { ADMIN } from '../../src/cli/admin/admin';
import type { Change, Fleet, History, ListedHealth } from '../../src/operators/live-answers';
import type { FleetWatch } from '../../src/operators/fleet/watches';
import { runOf } from '../cli/run-program';
import { freePorts } from '../support/processes/free-ports';
import { SilentPeer } from '../support/servers/silent-peer';
import { until } from '../support/waiting/until';
import { SHOP, Shop } from './shop';

const TOKEN = 'token-of-these-tests';
const OTHER_RULES = SHOP.replace('1000000', '2');

/**
 * Three instances that know each other, of which the third has other rules and another setting, and a peer that never
 * answers.
 */
let shops: readonly [Shop, Shop, Shop];
let silent: SilentPeer;
let addresses: readonly string[];

beforeAll(async () => {
  silent = await SilentPeer.start();
  const ports = await freePorts(3);
  addresses = ports.map((port) => `127.0.0.1:${port}`);
  const common = { OPERATOR_TOKEN: TOKEN, OPERATOR_PEERS: [...addresses, silent.address].join() };
  shops = await Promise.all([
    Shop.start({ env: { ...common, DEBUG_PORT: String(ports[0]) } }),
    Shop.start({ env: { ...common, DEBUG_PORT: String(ports[1]), WORKERS: '2' } }),
    Shop.start(
      { env: { ...common, DEBUG_PORT: String(ports[2]), NEAR_LIMIT_RATIO: '0.5', INSTANCE_NAME: 'third' } },
      OTHER_RULES,
    ),
  ]);
});
afterAll(async () => {
  await Promise.all(shops.map((shop) => shop[Symbol.asyncDispose]()));
  await silent[Symbol.asyncDispose]();
});

async function ask<T>({ weir }: Shop, path: string, token?: string): Promise<T> {
  const headers = { connection: 'close', ...(token !== undefined && { Authorization: `Bearer ${token}` }) };
  return JSON.parse(await weir.debug(path, { headers })) as T;
}

/** All instances, seen from one of them, when something is so. */
function fleetOf(shop: Shop, isSo: (fleet: Fleet) => boolean, token: string | undefined = TOKEN): Promise<Fleet> {
  return until('the instances are as expected', async () => {
    const fleet = await ask<Fleet>(shop, '/api/fleet', token);
    return fleet.pending === 0 && isSo(fleet) ? fleet : undefined;
  });
}

function admin(command: string) {
  return runOf(ADMIN, [...command.split(' '), '-address', addresses[0]!], { OPERATOR_TOKEN: TOKEN });
}

it('each instance shows all of them, itself once, and what differs; one that does not answer is shown', async () => {
  for (const [index, shop] of shops.entries()) {
    const { instances, differences, omitted } = await fleetOf(shop, (fleet) => {
      const well = fleet.instances.filter(({ problem, health }) => problem === null && health?.healthy === true);
      return well.length === 3 && fleet.instances.length === 4;
    });
    const others = addresses.filter((_, other) => other !== index);
    expect([instances.map(({ address }) => address), omitted]).toEqual([[null, ...others, silent.address], 0]);
    const problem = 'it did not answer in time (timeout 1 s)';
    expect(instances.map((instance) => instance.problem)).toEqual([null, null, null, problem]);
    expect(instances.slice(0, 3)).toMatchObject(Array(3).fill({ version: '1.0.0', health: { healthy: true } }));
    const names = [hostname(), hostname(), 'third', null];
    expect(instances.map(({ name }) => name)).toEqual([names[index], ...names.filter((_, other) => other !== index)]);
    const settings = differences.filter(({ aspect }) => aspect === 'settings');
    const odd = settings.filter(({ isExpected }) => !isExpected).map(({ name }) => name);
    expect(odd.toSorted()).toEqual(['NEAR_LIMIT_RATIO', 'WORKERS']);
    const expected = settings.filter(({ isExpected }) => isExpected).map(({ name }) => name);
    expect(expected).toEqual(expect.arrayContaining(['DEBUG_PORT', 'INSTANCE_NAME']));
    expect(differences.find(({ aspect }) => aspect === 'rules')!.values.map((each) => each.instances.length)).toEqual([
      2, 1,
    ]);
  }
  const health = await ask<ListedHealth>(shops[0], '/api/health');
  expect(health.instances).toMatchObject({
    ...{ state: 'amber', known: 4, seen: 3 },
    text: `1 instance of 4 without an answer: ${silent.address}: it did not answer in time (timeout 1 s)`,
  });
  expect(health).toMatchObject({ healthy: true, state: 'amber' });
});

it('the callers that are limited and the hits are the sums of all, for viewers with the token', async () => {
  const [one, several, third] = shops;
  // The limit of the third is 2 a day; a caller of the others is limited by hits beyond their limit.
  for (let call = 0; call < 5; call += 1) await third.hit('eve');
  for (const shop of [one, several]) for (let call = 0; call < 2; call += 1) await shop.hit('eve', 999_999);
  const fleet = await fleetOf(one, ({ offenders }) => offenders?.[0]?.limited === 5);
  expect(fleet.offenders).toMatchObject([{ domain: 'shop', rule: 'shop.user', descriptor: 'user=eve', limited: 5 }]);
  const summed = await fleetOf(one, ({ rules }) => (rules.denials[0]?.statisticsKey ?? '') === 'shop.user');
  expect(summed.rates!.over).toBeGreaterThan(0);
  const open = await ask<Fleet>(one, '/api/fleet');
  expect([open.offenders, open.instances.length]).toEqual([null, 4]);
  const ofSettings = open.differences.filter(({ aspect }) => aspect === 'settings').flatMap(({ values }) => values);
  expect(new Set(ofSettings.map(({ value }) => value))).toEqual(new Set([null]));
  expect(open.differences.map(({ aspect, isHidden }) => isHidden === (aspect === 'settings'))).not.toContain(false);
  expect(await ask(one, '/api/instance')).toMatchObject({ status: 401 });
});

it('weir-admin -fleet prints the health, the rules and the callers of all', async () => {
  const health = await admin('health -fleet');
  expect(health.exitCode).toBe(1);
  expect(health.stdout).toContain(` (this one): healthy\n`);
  expect(health.stdout).toContain(`an instance at ${silent.address}: no answer: it did not answer in time`);
  expect(health.stdout).toMatch(/^rules differ: [\da-f]{12} \(.+, .+\); [\da-f]{12} \(.+\)$/m);
  expect(health.stdout).toMatch(/^settings NEAR_LIMIT_RATIO differ: not set \(.+\); 0\.5 \(.+\)$/m);
  const rules = await admin('rules -fleet');
  expect(rules.stdout.match(/: 1 rule, version \S+@[\da-f]{12}, loaded /g)).toHaveLength(3);
  const top = await admin('top -fleet -domain shop');
  expect([top.exitCode, top.stdout]).toEqual([
    0,
    expect.stringMatching(
      /\n +5 {2}user=eve {2}shop\.user\n +limited until \S+; since \S+, in the last ten minutes 5(, \S+ % of .+)?\nan instance at /,
    ),
  ]);
  expect(await admin('explain -fleet')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('-fleet is for'),
  });
});

it('a caller is watched on all of them, and in all workers', async () => {
  const watch = '/api/watches?domain=shop&descriptor=user=zoe';
  const [one, several, third] = shops;
  await until('all watch it', async () => {
    const { missing, times } = await ask<FleetWatch>(one, watch, TOKEN);
    return missing.length === 1 && times.length > 0;
  });
  for (let call = 0; call < 4; call += 1) for (const shop of [one, several, third]) await shop.hit('zoe');
  // The limit of the third is 2 a day.
  const { missing } = await until('all calls are counted', async () => {
    const watched = await ask<FleetWatch>(one, watch, TOKEN);
    const [calls, denied] = [watched.calls, watched.denied].map((counts) =>
      counts.reduce((sum, each) => sum + each, 0),
    );
    return calls === 12 && denied === 2 ? watched : undefined;
  });
  expect(missing).toEqual([silent.address]);
  expect(await ask(one, watch)).toMatchObject({ status: 401 });
});

describe('what an instance knows', () => {
  it('is known to those that were started before its end: samples, marks and changes', async () => {
    const ports = (await freePorts(2)).map(String);
    const env = { OPERATOR_TOKEN: TOKEN, OPERATOR_PEERS: ports.map((port) => `127.0.0.1:${port}`).join() };
    async function start(name: string, port: string): Promise<Shop> {
      return Shop.start({ env: { ...env, INSTANCE_NAME: name, DEBUG_PORT: port, SHUTDOWN_DELAY: '0' } });
    }
    await using old = await start('old', ports[0]!);
    await using young = await start('young', ports[1]!);
    await until('the new one knows the old one', async () => {
      return (await ask<History>(young, '/api/history?most=360')).instances.length === 2;
    });
    await old.hit('eve', 30);
    const headers = { Authorization: `Bearer ${TOKEN}` };
    await old.weir.debug('/api/counters?domain=shop&descriptor=user=eve&reason=test', { method: 'DELETE', headers });
    await old.drain();
    const history = await ask<History>(young, '/api/history?most=360');
    const instance = `old (127.0.0.1:${ports[0]})`;
    expect(history.instances.map(({ name }) => name)).toEqual(['young', instance]);
    const marks = history.marks.filter((mark) => mark.instance === instance);
    expect(marks.map(({ kind }) => kind)).toEqual(['start', 'reload', 'stop']);
    const of = history.instances[1]!.id;
    const { rates } = await ask<History>(young, `/api/history?instance=${of}`);
    expect(rates.within.reduce<number>((hits, rate) => hits + 10 * rate!, 0)).toBeCloseTo(30);
    const { changes } = await ask<{ changes: readonly Change[] }>(young, '/api/changes', TOKEN);
    expect(changes).toMatchObject([
      { instance, name: 'OPERATOR_TOKEN', descriptor: 'user=eve', before: 30, reason: 'test' },
    ]);
  });
});

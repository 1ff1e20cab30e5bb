import { setTimeout as pause } from 'node:timers/promises';
import { RuleFolder } from '../../support/data/rule-folder';
import { ruleResource } from '../../support/data/rule-resources';
import { domainConfig, limit } from '../../support/data/rules';
import { WeirProcess } from '../../support/processes/weir-process';
import { workersOf } from '../../support/processes/worker-processes';
import { AdsServer, SnapshotCache } from '../../support/servers/ads-server';
import { ScriptedAdsPeer, message } from '../../support/servers/scripted-ads-peer';
import { Load } from '../shop';
import * as instance from './instance';

/** Milliseconds in which 25,000 rules are read even on a busy machine, by a thread of low priority. */
const SLOW = 300_000;
const LOADS = 'ratelimit.service.config_load_success';

function start(rules: RuleFolder, env: Readonly<Record<string, string>> = {}): Promise<WeirProcess> {
  return WeirProcess.start({ env: { ...rules.env, WORKERS: '2', ...env } });
}

/** A caller on each connection, which fails if it sees an older version of the rules after a newer one. */
function loadsOf(clients: instance.Clients): readonly Load[] {
  return clients.all.map((client) => {
    let latest = 0;
    return new Load(async () => {
      const version = await instance.versionOf(client);
      if (!(version >= latest)) throw new Error(`version ${version} after ${latest}`);
      latest = version;
      // Leaves time for the service, which has the same cores.
      await pause(1);
    }, 1);
  });
}

async function untilActive(weir: WeirProcess, version: number): Promise<void> {
  const limitText = `requests_per_unit=${instance.limitOf(version)},`;
  await weir.until(`version ${version} to be active`, async () => (await weir.debug('/rlconfig')).includes(limitText));
}

describe('a reload of an instance with two workers', () => {
  it('is counted when all workers decide with the new rules, and answered to the management server', async () => {
    const cache = new SnapshotCache();
    await using server = await AdsServer.start({ cache });
    function publish(version: number): void {
      const rules = domainConfig('shop', { key: 'user', rateLimit: limit(instance.limitOf(version), 'YEAR') });
      cache.publish(String(version), [ruleResource('shop', rules)]);
    }
    publish(0);
    const xds = { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: server.address };
    await using weir = await WeirProcess.start({ env: { ...xds, WORKERS: '2' } });
    using clients = await instance.Clients.open(weir, 4);
    for (let version = 1; version <= 20; version += 1) {
      publish(version);
      await weir.until('the load to be counted', async () => (await weir.statistics()).get(LOADS) === version + 1);
      expect(await clients.versions()).toEqual(Array(4).fill(version));
    }
    await weir.until('the last answer', () => server.requests.at(-1)?.versionInfo === '20');
    expect(server.requests.filter(({ errorDetail }) => errorDetail !== undefined)).toEqual([]);
  });

  it('is rejected when the management server sends 10 bytes that cannot be decompressed; all processes recover', async () => {
    await using peer = await ScriptedAdsPeer.start([]);
    const xds = { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: peer.address };
    await using weir = await WeirProcess.start({ env: { ...xds, WORKERS: '2' } });
    const before = workersOf(weir);
    peer.send(message(1, Buffer.alloc(5)));
    await weir.line(/new rules rejected; keeping the active rules: .* a response is marked as compressed/);
    await weir.until('the rules to be valid again', async () => {
      return (await weir.statistics()).get('ratelimit.config.rejected') === 0;
    });
    expect([peer.streams, workersOf(weir)]).toEqual([2, before]);
    using clients = await instance.Clients.open(weir, 4);
    for (const client of clients.all) {
      const { statuses } = await client.shouldRateLimit('shop', ['key=a']);
      expect(statuses[0]?.currentLimit?.requestsPerUnit).toBe(5);
    }
  });

  it(
    'brings the newest of many loads, and 25,000 rules, to all workers and to one that replaces ' +
      'another, without a failed call',
    async () => {
      await using rules = await RuleFolder.with({ 'shop.yaml': instance.ruleFile(1) });
      await using weir = await start(rules);
      using callers = await instance.Clients.open(weir, 4);
      const loads = loadsOf(callers);
      for (let version = 2; version <= 40; version += 1) await rules.write('shop.yaml', instance.ruleFile(version));
      await untilActive(weir, 40);
      const many = Array.from({ length: 25_000 }, (_, index) => `  - { key: plan, value: p${index} }\n`);
      const long = `  - { key: long, rate_limit: { unlimited: true }, metadata: { text: ${'ä'.repeat(200_000)} } }\n`;
      await rules.write('shop.yaml', instance.ruleFile(41, many.join('') + long));
      await untilActive(weir, 41);
      for (const load of loads) {
        await load[Symbol.asyncDispose]();
        expect(load.failures).toEqual([]);
      }
      using clients = new instance.Clients(weir);
      await clients.addUntilServedBy(await instance.replace(weir, workersOf(weir)[0]!.pid, 'SIGKILL'));
      expect(new Set(await clients.versions())).toEqual(new Set([41]));
    },
    2 * SLOW,
  );

  it('replaces a worker that does not answer; the others get the new rules, and keep their connections', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': instance.ruleFile(1) });
    await using weir = await start(rules);
    using clients = await instance.Clients.open(weir, 6);
    const [stopped, other] = workersOf(weir);
    const owners = await clients.owners();
    process.kill(stopped!.pid, 'SIGSTOP');
    await rules.write('shop.yaml', instance.ruleFile(2));
    await weir.line(/a worker does not answer and is killed/);
    const replacement = await weir.until('another worker', () =>
      workersOf(weir).find(({ pid }) => pid !== stopped!.pid && pid !== other!.pid),
    );
    await untilActive(weir, 2);
    expect(clients.all.map(({ isClosed }) => isClosed)).toEqual(owners.map((pid) => pid === stopped!.pid));
    using more = new instance.Clients(weir);
    await more.addUntilServedBy(replacement.pid);
    expect(new Set(await more.versions())).toEqual(new Set([2]));
    await rules.write('shop.yaml', instance.ruleFile(3));
    await untilActive(weir, 3);
    expect(new Set(await more.versions())).toEqual(new Set([3]));
  });
});

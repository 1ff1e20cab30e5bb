import { ServerCredentials } from '@grpc/grpc-js';
import { RateLimitClient } from '../support/clients/grpc-client';
import { newAuthority } from '../support/data/certificates';
import { ruleResource, simpleResource } from '../support/data/rule-resources';
import { domainConfig, limit } from '../support/data/rules';
import { WeirProcess } from '../support/processes/weir-process';
import { AdsServer } from '../support/servers/ads-server';
import { Files } from '../sources/rule-files/watched-rules';
import { BASE, expectReloadsUnderLoad, limitOf, ruleFile } from './reload-under-load';

const REJECTED = /level=error.*new rules rejected; keeping the active rules/;

/** The number of output lines that match. */
function countLines(weir: WeirProcess, pattern: RegExp): number {
  return weir.output.split('\n').filter((line) => pattern.test(line)).length;
}

/** How many loads are counted, and logged. */
async function loadsOf(weir: WeirProcess) {
  const counted = (await weir.statistics()).get('ratelimit.service.config_load_success');
  return [counted, countLines(weir, /rules loaded/)];
}

describe('the service with rule files', () => {
  let files: Files;
  let weir: WeirProcess;
  let client: RateLimitClient;
  beforeAll(async () => {
    files = new Files();
    files.write('root/edge/eu/limits/a.yaml', ruleFile(1, ['left']));
    files.write('root/edge/eu/limits/nested/b.yaml', ruleFile(1, ['right']));
    // Not read, which the settings define; two files for the same domain are.
    for (const path of ['.hidden.yaml', '../a.yaml', '../config/a.yaml'])
      files.write(`root/edge/eu/limits/${path}`, '{');
    files.change('chmod 755 .');
    weir = await WeirProcess.start({
      env: {
        RUNTIME_ROOT: files.at('root'),
        RUNTIME_SUBDIRECTORY: 'edge',
        RUNTIME_APPDIRECTORY: 'eu/limits',
        RUNTIME_WATCH_ROOT: 'false',
        RUNTIME_IGNOREDOTFILES: 'true',
        MERGE_DOMAIN_CONFIG: 'true',
      },
      underPermissions: true,
    });
    client = new RateLimitClient(weir.grpcAddress);
  });
  afterAll(async () => {
    client[Symbol.dispose]();
    await weir[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  async function statistic(name: string): Promise<number | undefined> {
    return (await weir.statistics()).get(name);
  }
  function loads(count: number) {
    const name = 'ratelimit.service.config_load_success';
    return weir.until(`load ${count}`, async () => (await statistic(name)) === count);
  }

  test('counts a load and changes nothing else when permissions change or the same contents are written', async () => {
    expect([await limitOf(client), await limitOf(client, 'right=b')]).toEqual([BASE + 1, BASE + 1]);
    const before = await weir.statistics();
    const rules = await weir.debug('/rlconfig');
    expect(rules).toMatch(/shop\.left: .*\nshop\.right: /);
    files.change('chmod 640 root/edge/eu/limits/a.yaml');
    await loads(2);
    files.write('root/edge/eu/limits/a.yaml', ruleFile(1, ['left']));
    await loads(3);
    const after = await weir.statistics();
    expect([before.get('runtime.load_attempts'), after.get('runtime.load_attempts')]).toEqual([1, 3]);
    for (const name of ['ratelimit.config.loaded_at', 'runtime.num_values', 'ratelimit.config.rejected'])
      expect([name, after.get(name)]).toEqual([name, before.get(name)]);
    expect(await weir.debug('/rlconfig')).toBe(rules);
    expect(countLines(weir, /rules loaded/)).toBe(1);
    const { statuses } = await client.shouldRateLimit('shop', ['left=b']);
    expect(statuses[0]?.limitRemaining).toBe(BASE + 1 - 2);
  });

  test('removes the rules of a removed file and keeps those of the other files', async () => {
    files.change('rm root/edge/eu/limits/nested/b.yaml');
    await weir.until('the rule to be removed', async () => (await limitOf(client, 'right=b')) === undefined);
    expect(await limitOf(client)).toBe(BASE + 1);
  });

  test('keeps the rules while it has no permission to read them, or while their folder is missing', async () => {
    const changes = [
      ['chmod 0 root/edge/eu/limits', /permission denied \(EACCES\)/, 'chmod 755 root/edge/eu/limits', 1],
      [
        'mv root away',
        /does not exist/,
        `cp -r away next; sed -i s/${BASE + 1}/${BASE + 2}/ $(find next -type f); mv next root`,
        2,
      ],
    ] as const;
    for (const [rejections, [change, reason, repair, version]] of changes.entries()) {
      files.change(change);
      await weir.until('the rejection', async () => (await statistic('ratelimit.config.rejected')) === 1);
      expect(countLines(weir, REJECTED)).toBe(rejections + 1);
      expect(weir.output.split('\n').findLast((line) => REJECTED.test(line))).toMatch(reason);
      const shown = new RegExp(`# load rejected .*, keeping the active rules:\n# {3}.*${reason.source}`);
      expect(await weir.debug('/rlconfig')).toMatch(shown);
      expect(await limitOf(client)).toBe(BASE + 1);
      files.change(repair);
      await weir.until('the rules to be read again', async () => (await statistic('ratelimit.config.rejected')) === 0);
      expect(await limitOf(client)).toBe(BASE + version);
      expect(countLines(weir, REJECTED)).toBe(rejections + 1);
    }
  });

  test('warns of calls to which no rule applies, with the nearest rule and what differs', async () => {
    const plan = `{ key: plan, value: free, rate_limit: { unit: day, requests_per_unit: 5 } }`;
    const text = `domain: shop\ndescriptors: [{ key: user, descriptors: [${plan}] }]`;
    files.write('root/edge/eu/limits/c.yaml', text);
    await weir.until('the rule', async () => (await weir.debug('/rlconfig')).includes('shop.user.plan_free'));
    /** Calls until there is a line: one call per second is examined. It has the keys of the call, not the values. */
    async function expectLine(domain: string, descriptor: string, pattern: RegExp): Promise<void> {
      const keys = descriptor.replaceAll(/=\w+/g, '');
      const line = await weir.until(`a line about ${descriptor}`, async () => {
        await client.shouldRateLimit(domain, [descriptor]);
        return weir.output.split('\n').find((each) => / descriptors=(\S+)/.exec(each)?.[1] === keys);
      });
      expect(line).toMatch(pattern);
    }
    const warning = 'level=warning msg="calls are not limited: no rule';
    await expectLine(
      'Shop',
      'user=anna,plan=free',
      new RegExp(`${warning} file has their domain" domain=Shop .*difference=.*'shop'`),
    );
    const nearest = new RegExp(
      `${warning} matches their descriptors" domain=shop .*nearest=shop\\.user difference=.*'User'.*'user'`,
    );
    await expectLine('shop', 'User=anna,plan=free', nearest);
    await expectLine('shop', 'user=anna', /nearest=shop\.user\.plan_free difference=/);
    await expectLine('shop', 'user=anna,plan=free,a=b', /nearest=shop\.user\.plan_free difference=/);
    expect(await statistic('ratelimit.service.unknown_domain')).toBeGreaterThan(0);
    expect(await statistic('ratelimit.service.no_match')).toBeGreaterThan(2);
  });
});

test('the service with a management server keeps the active rules whatever happens to the server or its rules', async () => {
  using files = new Files();
  const authority = newAuthority();
  const [own, peer] = [authority.issue('xds.example'), authority.issue('weir')];
  authority.dispose();
  for (const [name, text] of Object.entries({ ca: authority.ca, ...peer })) files.write(name, text);
  const pair = { cert_chain: Buffer.from(own.cert), private_key: Buffer.from(own.key) };
  const tls = ServerCredentials.createSsl(Buffer.from(authority.ca), [pair], true);
  await using server = await AdsServer.start({ credentials: tls });
  const env = {
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: server.address,
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
    CONFIG_GRPC_XDS_SERVER_TLS_CACERT: files.at('ca'),
    CONFIG_GRPC_XDS_SERVER_TLS_SAN: 'xds.example',
    CONFIG_GRPC_XDS_CLIENT_TLS_CERT: files.at('cert'),
    CONFIG_GRPC_XDS_CLIENT_TLS_KEY: files.at('key'),
    CONFIG_GRPC_XDS_NODE_ID: 'edge-7',
    CONFIG_GRPC_XDS_NODE_METADATA: 'zone=a,ring=2',
    CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'x-tenant:blue,x-path:a:b',
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '150ms',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_RANDOM_FACTOR: '3',
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
    XDS_CLIENT_BACKOFF_JITTER: 'false',
    XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: '1000',
    MERGE_DOMAIN_CONFIG: 'true',
    UNMATCHED_WARNINGS: 'false',
  };
  await using weir = await WeirProcess.start({ env, awaitServing: false });
  using client = new RateLimitClient(weir.grpcAddress);
  const source = `xDS server ${server.address}`;
  function resources(version: number) {
    const rateLimit = limit(BASE + version, 'YEAR');
    return ['left', 'right'].map((key) => ruleResource(key, domainConfig('shop', { key, rateLimit })));
  }
  for (const wait of [100, 300, 500]) {
    const stream = await server.nextStream();
    expect([stream.metadata.get('x-tenant'), stream.metadata.get('x-path')]).toEqual([['blue'], ['a:b']]);
    const { node } = await stream.nextRequest();
    expect(node).toEqual({ id: 'edge-7', cluster: '', metadata: { zone: 'a', ring: '2' } });
    stream.end({ details: `attempt before ${wait}` });
    await weir.line(new RegExp(`no stream from the xDS server.*attempt before ${wait}".*wait=${wait}ms`));
  }
  await weir.line(/no active rules; not serving until valid rules are loaded/);
  expect(await weir.debugHealth()).toEqual([500, 'unhealthy: waiting for the first valid rules']);
  await expect(weir.http('/healthcheck')).rejects.toThrow('fetch failed');

  (await server.nextStream()).send('0', [simpleResource('x'.repeat(2_000), 5)]);
  expect(await weir.line(/rules rejected/)).toContain('exceeds XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES (1000)');
  let stream = await server.nextStream();
  stream.send('good-1', resources(1));
  await weir.line(/msg="?serving/);
  const shown = new RegExp(`^# from ${source}\n# version good-1\n# loaded \\S+\nshop\\.left: .*\nshop\\.right: `);
  expect(await weir.debug('/rlconfig')).toMatch(shown);
  expect((await weir.statistics()).get('ratelimit.xds.connected')).toBe(1);

  const errors = (await weir.statistics()).get('ratelimit.service.config_load_error') ?? 0;
  // Each rejection is counted, and only the first one is logged.
  for (const rejections of [1, 2]) {
    stream.send('bad-2', [ruleResource('shop', domainConfig('shop', { key: '' }))]);
    await weir.until('the rejection', async () => {
      return (await weir.statistics()).get('ratelimit.service.config_load_error') === errors + rejections;
    });
  }
  expect(countLines(weir, REJECTED)).toBe(1);
  expect((await weir.statistics()).get('ratelimit.config.rejected')).toBe(1);
  expect(await limitOf(client)).toBe(BASE + 1);
  expect(await weir.debug('/rlconfig')).toContain(
    `:\n#   ${source}, version bad-2:\n#   resource 'shop', descriptors[0]: desc`,
  );
  stream.send('good-3', resources(3));
  await weir.until('the valid rules to be active', async () => (await limitOf(client)) === BASE + 3);
  stream.end();
  await weir.line(/the stream from the xDS server ended; reconnecting.*wait=150ms/);
  stream = await server.nextStream();
  expect(await stream.nextRequest()).toMatchObject({ versionInfo: '', responseNonce: '' });
  // The same rules under another version are no load: only their version is another one.
  const [loads, loadedAt] = [await loadsOf(weir), /# loaded \S+/.exec(await weir.debug('/rlconfig'))?.[0]];
  stream.send('restarted-1', resources(3));
  expect(await stream.nextRequest()).toMatchObject({ versionInfo: 'restarted-1', errorDetail: undefined });
  expect(await weir.debug('/rlconfig')).toContain(`\n# version restarted-1\n${loadedAt}\n`);
  expect(await loadsOf(weir)).toEqual(loads);
  await server[Symbol.asyncDispose]();
  await weir.until('the connection to be lost', async () => {
    return (await weir.statistics()).get('ratelimit.xds.connected') === 0;
  });
  expect(await limitOf(client)).toBe(BASE + 3);
  await client.shouldRateLimit('shop', ['other=x']);
  expect((await weir.statistics()).get('ratelimit.service.no_match')).toBe(1);
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
  expect(weir.output).not.toContain('not limited');
});

test('a reload under load, caused by a swapped ConfigMap, fails no call, mixes no rulesets, and loses no count', () =>
  expectReloadsUnderLoad('a swapped ConfigMap', 2));

import { Client, credentials } from '@grpc/grpc-js';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REJECTIONS } from '../../../src/grpc/http2/limits/rejections';
import { SERVICE_ERRORS, STORE_ERRORS } from '../../../src/statistics/statistics';
import { AdsServer, SnapshotCache } from '../../support/servers/ads-server';
import { newAuthority } from '../../support/data/certificates';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { simpleResource } from '../../support/data/rule-resources';
import { RuleFolder } from '../../support/data/rule-folder';
import { until } from '../../support/waiting/until';
import type { WeirProcess } from '../../support/processes/weir-process';
import { DOCUMENTED, type DocumentedStatistic, documentedRefusals } from './documented-statistics';
import { HeardServices, type Wires } from './heard-statistics';

const RULES = `
domain: shop
descriptors:
  - { key: plain, rate_limit: { unit: day, requests_per_unit: 10 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: user, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 100 } }
  - { key: brief, rate_limit: { unit: second, requests_per_unit: 0 } }
  - { key: none, rate_limit: { unit: day, requests_per_unit: 0 } }
`;

/** What the certificate says; the address has no name. */
const NAME = 'weir.test';
const NAMED = { 'grpc.ssl_target_name_override': NAME, 'grpc.default_authority': NAME };

/** Redis, rules from files, TLS: everything but what only the other two move. */
async function withFilesAndRedis(): Promise<Wires> {
  const authority = newAuthority();
  const certificates = await mkdtemp(join(tmpdir(), 'weir-certificates-'));
  const [certFile, keyFile] = [join(certificates, 'cert.pem'), join(certificates, 'key.pem')];
  try {
    const { cert, key } = authority.issue(NAME);
    await writeFile(certFile, cert);
    await writeFile(keyFile, key);
    await using redis = await RedisProcess.start();
    await using folder = await RuleFolder.with({ 'shop.yaml': RULES });
    await using services = await HeardServices.start({
      ...folder.env,
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: certFile,
      GRPC_SERVER_TLS_KEY: keyFile,
      BACKEND_TYPE: 'kvstore',
      KVSTORE_URL: redis.address,
      KVSTORE_PERSECOND: 'true',
      KVSTORE_PERSECOND_URL: redis.address,
      KVSTORE_PIPELINE_WINDOW: '20ms',
      // Room for two keys.
      LOCAL_CACHE_SIZE_IN_BYTES: '300',
      STATS_MAX_RUNTIME_KEYS: '3',
      SHADOW_MODE: 'true',
    });
    const channel = credentials.createSsl(Buffer.from(authority.ca));
    await services.both((weir) => ask(weir, channel));
    await services.look();
    await writeFile(certFile, 'broken');
    await folder.write('bad.yaml', 'domain: [');
    await services.both(async (weir) => {
      await weir.line(/the new rules are refused/);
      await weir.line(/the new certificates of the gRPC listener are refused/);
    });
    await redis.crash();
    await services.both((weir) => failToCount(weir, channel));
    return await services.end();
  } finally {
    authority.dispose();
    await rm(certificates, { recursive: true, force: true });
  }
}

async function ask(weir: WeirProcess, channel: ReturnType<typeof credentials.createSsl>): Promise<void> {
  using client = new RateLimitClient(weir.grpcAddress, channel, NAMED);
  await client.ask('shop', ['plain'], 10);
  await client.ask('shop', ['plain']);
  await client.ask('shop', ['plain']);
  await client.ask('shop', ['shadow'], 2);
  await client.ask('shop', ['user=a']);
  await client.ask('shop', [
    {
      entries: [{ key: 'user', value: 'a' }],
      limit: undefined,
      hitsAddend: 3n,
      isNegativeHits: true,
    },
  ]);
  await client.ask('nowhere', ['plain', 'plain']);
  await expect(client.ask('', ['plain'])).rejects.toThrow('domain');
  // The fourth key with a value, for which there is no room.
  for (const value of ['b', 'c']) await client.ask('shop', [`user=${value}`]);
  async function moves(name: string, move: () => Promise<unknown>) {
    return weir.until(`${name} to move`, async () => {
      await move();
      return ((await weir.statistics()).get(name) ?? 0) > 0;
    });
  }
  let value = 0;
  function twice() {
    value += 1;
    return Promise.all([client.ask('shop', [`none=${value}`]), client.ask('shop', [`none=${value}`])]);
  }
  await moves('ratelimit.pipeline.merged_hits', twice);
  await moves('ratelimit.localcache.overwriteCount', twice);
  await moves('ratelimit.localcache.evacuateCount', twice);
  await moves('ratelimit.localcache.expiredCount', async () => {
    await client.ask('shop', ['brief']);
    const second = Math.floor(Date.now() / 1000);
    await until('the second is over', () => Math.floor(Date.now() / 1000) > second);
    // Its key makes room only now.
    await twice();
    await twice();
  });
  for (const method of ['Check', 'List']) await callHealth(weir, channel, method);
  const stranger = connect(weir.ports.grpc, '127.0.0.1');
  stranger.on('error', () => undefined).end('this is not TLS');
  await once(stranger, 'close');
  await moves('ratelimit_server.http2.tls_handshake', () => Promise.resolve());
}

function callHealth(weir: WeirProcess, channel: ReturnType<typeof credentials.createSsl>, method: string) {
  const client = new Client(weir.grpcAddress, channel, NAMED);
  function bytes(message: Buffer): Buffer {
    return message;
  }
  return new Promise<void>((resolve, reject) => {
    client.makeUnaryRequest(`/grpc.health.v1.Health/${method}`, bytes, bytes, Buffer.alloc(0), (error) => {
      client.close();
      if (error === null) resolve();
      else reject(error);
    });
  });
}

async function failToCount(weir: WeirProcess, channel: ReturnType<typeof credentials.createSsl>): Promise<void> {
  using client = new RateLimitClient(weir.grpcAddress, channel, NAMED);
  await weir.until('a call that the store fails', () =>
    client.ask('shop', ['user=a']).then(
      () => false,
      () => true,
    ),
  );
  for (const pool of ['redis_pool', 'redis_per_second_pool']) {
    await weir.until('its connections to be closed', async () => {
      const statistics = await weir.statistics();
      return statistics.has(`ratelimit.${pool}.cx_local_close`) && statistics.get(`ratelimit.${pool}.cx_active`) === 0;
    });
  }
}

/** Memory with room for few keys, rules from a management server. */
async function withXdsAndMemory(): Promise<Wires> {
  const cache = new SnapshotCache();
  cache.publish('1', [simpleResource('shop', 10)]);
  await using server = await AdsServer.start({ cache });
  await using services = await HeardServices.start({
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: server.address,
    MEMORY_MAX_KEYS: '2',
  });
  await services.both(async (weir) => {
    using client = new RateLimitClient(weir.grpcAddress);
    for (const value of ['a', 'b', 'c']) await client.ask('shop', [`key=${value}`]);
  });
  return await services.end();
}

let worlds: readonly Wires[];
beforeAll(async () => {
  const both = await Promise.allSettled([withFilesAndRedis(), withXdsAndMemory()]);
  worlds = both.map((world) => {
    if (world.status === 'rejected') throw world.reason;
    return world.value;
  });
});

/** What was heard on a wire of a documented statistic, over both worlds; 0: it has not moved. */
function heard({ kind, name, metric }: DocumentedStatistic, wire: keyof Wires): number {
  const is = wire === 'pulled' ? metric : name;
  const all = worlds.flatMap((world) => world[wire]).filter((each) => is.test(each.name));
  return kind === 'gauge'
    ? Math.max(0, ...all.map(({ greatest }) => greatest))
    : all.reduce((sum, { value }) => sum + value, 0);
}

function find(written: string) {
  return DOCUMENTED.find((each) => each.written === written) as DocumentedStatistic;
}

describe('every statistic of docs/statistics.md', () => {
  it.each(DOCUMENTED.map((each) => [each.written, each] as const))('%s moves, and every output says so', (_, each) => {
    const outputs = (['pushed', 'tagged', 'pulled', 'printed'] as const).map(
      (wire) => [wire, heard(each, wire)] as const,
    );
    expect(outputs.filter(([, value]) => !(value > 0))).toEqual([]);
    // Two of the rows have one metric; gauges may have moved between two looks.
    if (each.kind === 'gauge') return;
    const ofMetric = DOCUMENTED.filter(({ metric }) => metric.source === each.metric.source);
    const known = heard(each, 'known');
    expect([heard(each, 'pushed'), heard(each, 'tagged')]).toEqual([known, known]);
    expect(heard(each, 'pulled')).toBe(ofMetric.reduce((sum, other) => sum + heard(other, 'known'), 0));
    expect(heard(each, 'printed')).toBe(heard(each, 'knownToPrinter'));
  });

  it.each(['ShouldRateLimit', 'Check', 'List'])('counts and times %s on every output', (method) => {
    for (const wire of ['pushed', 'tagged', 'printed'] as const) {
      const names = worlds[0]?.[wire].map(({ name }) => name);
      expect(names).toContain(`ratelimit_server.${method}.total_requests`);
      expect(names).toContain(`ratelimit_server.${method}.response_time`);
    }
  });

  it('counts what was asked', () => {
    const rule = 'ratelimit.service.rate_limit.shop';
    const expected = {
      [`${rule}.plain.total_hits`]: 12,
      [`${rule}.plain.within_limit`]: 10,
      [`${rule}.plain.near_limit`]: 2,
      [`${rule}.plain.over_limit`]: 2,
      [`${rule}.plain.over_limit_with_local_cache`]: 1,
      [`${rule}.shadow.shadow_mode`]: 1,
      [`${rule}.user_a.total_negative_hits`]: 3,
      'ratelimit.service.rate_limit.nowhere.domain_not_found': 2,
      [SERVICE_ERRORS]: 1,
      'ratelimit_server.Check.total_requests': 1,
      'ratelimit_server.List.total_requests': 1,
      'ratelimit.service.config_load_success': 1,
      'ratelimit.service.config_load_error': 1,
      'runtime.load_attempts': 2,
      'runtime.load_failures': 1,
      'certs.load_attempts': 2,
      'certs.load_failures': 1,
    };
    for (const wire of ['pushed', 'tagged', 'printed'] as const) {
      const all = Object.fromEntries(worlds[0]?.[wire].map(({ name, value }) => [name, value]) ?? []);
      expect(Object.fromEntries(Object.keys(expected).map((name) => [name, all[name]]))).toEqual(expected);
    }
  });
});

describe('docs/statistics.md', () => {
  it('names everything that a service says of itself', () => {
    const names = new Set(
      worlds
        .flatMap(({ pushed, known, knownToPrinter }) => [pushed, known, knownToPrinter].flat())
        .map(({ name }) => name),
    );
    expect([...names].filter((name) => DOCUMENTED.filter((each) => each.name.test(name)).length !== 1)).toEqual([]);
    expect(names.size).toBeGreaterThan(DOCUMENTED.length);
  });

  it('names everything that the source can count', () => {
    const made = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.startsWith('gen/'))
      .flatMap((file) => namesIn(readFileSync(join(SOURCES, file), 'utf8')));
    expect(made.length).toBeGreaterThan(25);
    expect(made.filter((name) => !DOCUMENTED.some(({ written }) => covers(written, name)))).toEqual([]);
  });

  it('names what the gRPC listener refuses', () => {
    expect(documentedRefusals()).toEqual([...REJECTIONS]);
    expect(find('ratelimit_server.http2.<refusal>')).toBeDefined();
  });
});

const SOURCES = join(__dirname, '../../../src');
const CONSTANTS: Readonly<Record<string, string>> = { SERVICE_ERRORS, STORE_ERRORS };

/** The names of the counters, gauges and timers that a file makes, with `*` for what is put in. */
function namesIn(source: string): readonly string[] {
  return [...source.matchAll(/statistics\.(?:counter|gauge|timer)\(\s*(?:'([^']+)'|`([^`]+)`|([A-Z_]+)\))/g)].map(
    ([, text, template, constant = '']) =>
      text ?? template?.replaceAll(/\$\{[^}]+\}/g, '*') ?? CONSTANTS[constant] ?? constant,
  );
}

/** Whether a documented name is one of those that the source makes. */
function covers(written: string, made: string): boolean {
  const parts = made.split('*').map((part) => part.replaceAll('.', '\\.'));
  return new RegExp(`^${parts.join('[\\w<>]+')}$`).test(written);
}

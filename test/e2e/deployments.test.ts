import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServerCredentials, credentials } from '@grpc/grpc-js';
import { RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { RateLimitClient } from '../support/clients/grpc-client';
import { type Authority, newAuthority } from '../support/data/certificates';
import { ruleResource } from '../support/data/rule-resources';
import { ConfigMapMount, RuleTree } from '../support/data/rule-tree';
import { domainConfig, limit } from '../support/data/rules';
import { freePorts } from '../support/processes/free-ports';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { WeirProcess } from '../support/processes/weir-process';
import { AdsServer, SnapshotCache } from '../support/servers/ads-server';
import { TcpReceiver } from '../support/servers/statsd-receivers';

const ROOT = join(__dirname, '../..');
const LAUNCHER = readFileSync(join(ROOT, 'deploy/container/ratelimit'), 'utf8');

const folder = new RuleTree();
let redis: RedisProcess;
/** The launcher of the image, with the Node and the program that are here. */
let program: string;

beforeAll(async () => {
  redis = await RedisProcess.start();
  program = folder.at('bin/ratelimit');
  folder.folder('bin');
  cpSync(join(ROOT, 'deploy/container/ratelimit'), program);
  writeFileSync(program, LAUNCHER.replace(/^#!.*/, `#!${process.execPath}`).replaceAll('/app/', `${ROOT}/`));
});
afterAll(async () => {
  await redis[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/**
 * The environment of a deployment: `NAME=value`, one per line. The blank variable is one that the tests set and
 * deployments do not.
 */
function environment(text: string): Readonly<Record<string, string>> {
  const pairs = [...text.matchAll(/^\s*(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value] as const);
  return { BACKEND_TYPE: ' ', ...Object.fromEntries(pairs) };
}

/** Warnings and worse, without those about a busy machine, on which a store may accept a connection late. */
function warningsOf(weir: WeirProcess): readonly string[] {
  const lines = weir.output.split('\n').filter((line) => /level=(?:warning|error|fatal)/.test(line));
  return lines.filter((line) => !/reason="no reply within \d+ ms"/.test(line));
}

describe('the command /bin/ratelimit of the image', () => {
  it('prints help, version and errors as weir does, whose arguments it takes', () => {
    expect(execFileSync(program, ['--version'], { encoding: 'utf8' })).toMatch(/^weir \d/);
    expect(execFileSync(program, ['--help'], { encoding: 'utf8' })).toMatch(/^Usage: weir /);
    expect(() => execFileSync(program, ['--port'], { stdio: 'pipe' })).toThrow('weir: unknown flag -port');
  });

  it('serves with several workers, and ends with 0 after SIGTERM', async () => {
    folder.folder('config');
    await using weir = await WeirProcess.start({ program, env: { WORKERS: '2', RUNTIME_ROOT: folder.base } });
    expect((await weir.http('/healthcheck')).status).toBe(200);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
  });
});

/** Variables that Kubernetes sets for a Service named redis. */
const SERVICE_LINKS = `
  REDIS_SERVICE_HOST=10.96.0.7
  REDIS_SERVICE_PORT=6379
  REDIS_PORT=tcp://10.96.0.7:6379
  REDIS_PORT_6379_TCP=tcp://10.96.0.7:6379
  REDIS_PORT_6379_TCP_PROTO=tcp
  ENVOY_RATELIMIT_PORT_8081_TCP_ADDR=10.96.0.8`;

describe('the Deployment of Envoy Gateway', () => {
  const POLICY = 'httproute/default/shop/rule/0';
  /**
   * What it makes of a BackendTrafficPolicy with two rules: a limit for each value of a header, and one for each
   * address.
   */
  const RULES = domainConfig('default/edge/http', {
    key: POLICY,
    value: POLICY,
    descriptors: [
      {
        key: 'rule-0-match-0',
        value: 'rule-0-match-0',
        rateLimit: limit(2, 'HOUR'),
      },
      {
        key: 'rule-1-match-0',
        value: 'rule-1-match-0',
        descriptors: [
          {
            key: 'masked_remote_address',
            value: '0.0.0.0/0',
            descriptors: [{ key: 'remote_address', rateLimit: limit(1, 'HOUR') }],
          },
        ],
      },
    ],
  });
  const BY_ADDRESS = `${POLICY}=${POLICY},rule-1-match-0=rule-1-match-0,masked_remote_address=0.0.0.0/0,remote_address=`;
  const MAPPER = `mappings:
  - match: ratelimit.service.rate_limit.*.*.*.over_limit
    name: ratelimit_service_rate_limit_over_limit
    timer_type: histogram
    labels: { domain: $1, key1: $2, key2: $3 }
  - { match: ., match_type: regex, action: drop, name: dropped }
`;

  let authority: Authority;
  let ads: AdsServer;
  const cache = new SnapshotCache();
  let weir: WeirProcess;
  let metricsPort: number;

  beforeAll(async () => {
    authority = newAuthority();
    const { cert, key } = authority.issue('localhost', '127.0.0.1');
    const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
    ads = await AdsServer.start({
      cache,
      credentials: ServerCredentials.createSsl(Buffer.from(authority.ca), [pair], true),
    });
    const certs = new ConfigMapMount(folder, 'certs');
    certs.publish({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.ca });
    new ConfigMapMount(folder, 'statsd-exporter').publish({ 'conf.yaml': MAPPER });
    [metricsPort] = await freePorts(1);
    const env = environment(`
      RUNTIME_ROOT=/data
      RUNTIME_SUBDIRECTORY=ratelimit
      RUNTIME_IGNOREDOTFILES=true
      RUNTIME_WATCH_ROOT=false
      LOG_LEVEL=info
      USE_STATSD=false
      CONFIG_TYPE=GRPC_XDS_SOTW
      CONFIG_GRPC_XDS_SERVER_URL=localhost:${ads.port}
      CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit
      GRPC_SERVER_USE_TLS=true
      GRPC_SERVER_TLS_CERT=${folder.at('certs/tls.crt')}
      GRPC_SERVER_TLS_KEY=${folder.at('certs/tls.key')}
      GRPC_SERVER_TLS_CA_CERT=${folder.at('certs/ca.crt')}
      CONFIG_GRPC_XDS_SERVER_USE_TLS=true
      CONFIG_GRPC_XDS_CLIENT_TLS_CERT=${folder.at('certs/tls.crt')}
      CONFIG_GRPC_XDS_CLIENT_TLS_KEY=${folder.at('certs/tls.key')}
      CONFIG_GRPC_XDS_SERVER_TLS_CACERT=${folder.at('certs/ca.crt')}
      FORCE_START_WITHOUT_INITIAL_CONFIG=true
      REDIS_SOCKET_TYPE=tcp
      REDIS_URL=${redis.address}
      USE_PROMETHEUS=true
      PROMETHEUS_ADDR=:${metricsPort}
      PROMETHEUS_MAPPER_YAML=${folder.at('statsd-exporter/conf.yaml')}
      ${SERVICE_LINKS}`);
    weir = await WeirProcess.start({ program, env });
  });
  afterAll(async () => {
    // Also when one of them could not start.
    await Promise.all([weir, ads].map(async (each?: AsyncDisposable) => each?.[Symbol.asyncDispose]()));
    authority.dispose();
  });

  it('starts before its control plane has rules, without a warning, and names in one line what it ignores', async () => {
    expect((await weir.http('/healthcheck')).status).toBe(200);
    expect(warningsOf(weir)).toEqual([]);
    const names = 'RUNTIME_ROOT RUNTIME_SUBDIRECTORY RUNTIME_IGNOREDOTFILES RUNTIME_WATCH_ROOT GRPC_SERVER_TLS_CA_CERT';
    const line = await weir.line(/have no effect/);
    expect(line).toContain(`level=info msg="variables that have no effect here are ignored" variables="${names}"`);
    expect(weir.output.match(/no effect/g)).toHaveLength(1);
  });

  it('reads the rules over mutual TLS, and decides by them over TLS', async () => {
    cache.publish('1', [ruleResource('default/edge/http', RULES)]);
    using client = new RateLimitClient(weir.grpcAddress, credentials.createSsl(Buffer.from(authority.ca)), {
      'grpc.ssl_target_name_override': 'localhost',
    });
    await weir.line(/rules loaded.*domains=1/);
    expect((await ads.nextStream()).metadata).toBeDefined();
    const codes: Code[] = [];
    for (const descriptor of [
      ...Array.from({ length: 3 }, () => `${POLICY}=${POLICY},rule-0-match-0=rule-0-match-0`),
      ...['203.0.113.7', '203.0.113.7', '203.0.113.8'].map((address) => `${BY_ADDRESS}${address}`),
      `${POLICY}=${POLICY},rule-2-match-0=rule-2-match-0`,
    ])
      codes.push((await client.shouldRateLimit('default/edge/http', [descriptor])).overallCode);
    const { OK, OVER_LIMIT } = Code;
    expect(codes).toEqual([OK, OK, OVER_LIMIT, OK, OVER_LIMIT, OK, OK]);
    expect(await redis.control.dbsize()).toBeGreaterThan(0);
  });

  it('serves the metrics that its mapping file names, and no others of calls', async () => {
    const page = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    const labels = `domain="default/edge/http",key1="${POLICY}_${POLICY}",key2="rule-0-match-0_rule-0-match-0"`;
    expect(page).toContain(`ratelimit_service_rate_limit_over_limit{${labels}} 1`);
    expect(page).not.toContain('ratelimit_service_rate_limit_total_hits');
  });
});

const CONTOUR = `
  USE_STATSD=false
  LOG_LEVEL=debug
  REDIS_SOCKET_TYPE=tcp
  REDIS_URL={redis}
  RUNTIME_ROOT={data}
  RUNTIME_SUBDIRECTORY=ratelimit
  RUNTIME_WATCH_ROOT=false
  RUNTIME_IGNOREDOTFILES=true`;

describe.each([
  ['the example of Contour', CONTOUR],
  ['the sample of Istio', `${CONTOUR}\n  HOST=::\n  GRPC_HOST=::\n ${SERVICE_LINKS}`],
  [
    'the Compose file of the Go service',
    CONTOUR.replace('USE_STATSD=false', 'USE_STATSD=true\n  STATSD_HOST=127.0.0.1\n  STATSD_PORT={statsd}'),
  ],
])('%s', (name, text) => {
  it('serves its rules with its command and environment, without a warning', async () => {
    await using statsd = await TcpReceiver.start();
    const data = name.replaceAll(' ', '-');
    new ConfigMapMount(folder, `${data}/ratelimit/config`).publish({
      'config.yaml': `domain: ${data}\ndescriptors:\n  - key: PATH\n    value: /\n    rate_limit: { unit: hour, requests_per_unit: 1 }\n`,
    });
    const values: Readonly<Record<string, string>> = {
      redis: redis.address,
      data: folder.at(data),
      statsd: String(statsd.port),
    };
    const env = environment(text.replaceAll(/\{(\w+)\}/g, (_, word: string) => values[word]!));
    await using weir = await WeirProcess.start({ program, env });
    expect((await weir.http('/healthcheck')).status).toBe(200);
    using client = new RateLimitClient(weir.grpcAddress);
    const codes = [];
    for (let call = 0; call < 2; call += 1) codes.push((await client.shouldRateLimit(data, ['PATH=/'])).overallCode);
    expect(codes).toEqual([Code.OK, Code.OVER_LIMIT]);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    expect(warningsOf(weir)).toEqual([]);
    const counted = statsd.sum(`ratelimit.service.rate_limit.${data}.PATH_/.total_hits`);
    expect(counted).toBe(env['USE_STATSD'] === 'true' ? 2 : 0);
  });
});

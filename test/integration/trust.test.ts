import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServerCredentials } from '@grpc/grpc-js';
import { type Authority, newAuthority } from '../support/data/certificates';
import { simpleResource } from '../support/data/rule-resources';
import { RuleFolder } from '../support/data/rule-folder';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { WeirProcess } from '../support/processes/weir-process';
import { AdsServer, SnapshotCache } from '../support/servers/ads-server';

type Environment = Readonly<Record<string, string>>;

const JSON_REQUEST = '{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"ann"}]}]}';

let authority: Authority;
let folder: string;
let rules: RuleFolder;

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

beforeAll(async () => {
  authority = newAuthority();
  folder = mkdtempSync(join(tmpdir(), 'weir-trust-'));
  mkdirSync(join(folder, 'certificates'));
  file('certificates/private.crt', authority.ca);
  file('ca.pem', authority.ca);
  rules = await RuleFolder.with({
    'shop.yaml': 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 9 } }]',
  });
});
afterAll(async () => {
  authority.dispose();
  rmSync(folder, { recursive: true });
  await rules[Symbol.asyncDispose]();
});

/** Ways to trust a private authority without a setting of weir; {@link folder} is prepared for them. */
const WAYS: readonly (readonly [name: string, environment: () => Environment])[] = [
  ['SSL_CERT_FILE', () => ({ SSL_CERT_FILE: join(folder, 'ca.pem') })],
  ['SSL_CERT_DIR', () => ({ SSL_CERT_DIR: join(folder, 'certificates') })],
  ['NODE_EXTRA_CA_CERTS', () => ({ NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') })],
];

describe('Redis with TLS and no CA file', () => {
  let server: RedisProcess;
  let environment: Environment;
  beforeAll(async () => {
    const { cert, key } = authority.issue('localhost');
    server = await RedisProcess.start({
      isTls: true,
      directives: [
        ...['--tls-cert-file', file('redis.pem', cert), '--tls-key-file', file('redis.key', key)],
        ...['--tls-auth-clients', 'no', '--tls-ca-cert-file', join(folder, 'ca.pem')],
      ],
      control: { tls: { ca: authority.ca, checkServerIdentity: () => undefined } },
    });
    environment = {
      ...rules.env,
      BACKEND_TYPE: 'kvstore',
      KVSTORE_URL: `localhost:${server.port}`,
      KVSTORE_TLS: 'true',
      KVSTORE_STARTUP_INITIAL_INTERVAL: '20ms',
      KVSTORE_STARTUP_MAX_ELAPSED_TIME: '200ms',
    };
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it.each(WAYS)('is trusted by %s', async (_, way) => {
    await using weir = await WeirProcess.start({ env: { ...environment, ...way() } });
    const response = await weir.http('/json', { method: 'POST', body: JSON_REQUEST });
    expect(await response.json()).toMatchObject({ overallCode: 'OK' });
  });

  it('is not trusted without the authority', async () => {
    await using weir = await WeirProcess.start({ env: environment, awaitServing: false });
    expect(await weir.exited).toBe(1);
    expect(weir.output).toMatch(/unable to verify the first certificate|self-signed certificate in certificate chain/);
  });
});

describe('an xDS server with TLS and no CA file', () => {
  let server: AdsServer;
  let environment: Environment;
  beforeAll(async () => {
    const cache = new SnapshotCache();
    cache.publish('1', [simpleResource('shop', 5)]);
    const { cert, key } = authority.issue('localhost');
    const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
    server = await AdsServer.start({ cache, credentials: ServerCredentials.createSsl(null, [pair]) });
    environment = {
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: `localhost:${server.port}`,
      CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
    };
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it.each(WAYS)('is trusted by %s', async (_, way) => {
    await using weir = await WeirProcess.start({ env: { ...environment, ...way() } });
    expect(await weir.debug('/rlconfig')).toContain('shop.');
  });

  it('is not trusted without the authority', async () => {
    await using weir = await WeirProcess.start({ env: environment, awaitServing: false });
    expect(await weir.line(/no stream from the xDS server/)).toMatch(/certificate/);
  });
});

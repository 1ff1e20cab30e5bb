import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServerCredentials } from '@grpc/grpc-js';
import { type Authority, newAuthority } from '../support/data/certificates';
import { RuleFolder } from '../support/data/rule-folder';
import { simpleResource } from '../support/data/rule-resources';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { WeirProcess } from '../support/processes/weir-process';
import { AdsServer, SnapshotCache } from '../support/servers/ads-server';

let authority: Authority;
let folder: string;
beforeAll(() => {
  authority = newAuthority();
  folder = mkdtempSync(join(tmpdir(), 'weir-trust-'));
  file('ca.pem', authority.ca);
});
afterAll(() => {
  authority.dispose();
  rmSync(folder, { recursive: true });
});

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

// What the variables of the operating system may contain is tested in net/trusted-roots.test.ts.
test('Redis with TLS and no CA file is trusted only by the operating system', async () => {
  const { cert, key } = authority.issue('localhost');
  await using server = await RedisProcess.start({
    isTls: true,
    directives: [
      ...['--tls-cert-file', file('redis.pem', cert), '--tls-key-file', file('redis.key', key)],
      ...['--tls-auth-clients', 'no', '--tls-ca-cert-file', join(folder, 'ca.pem')],
    ],
    control: { tls: { ca: authority.ca, checkServerIdentity: () => undefined } },
  });
  await using rules = await RuleFolder.with({
    'shop.yaml': 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 9 } }]',
  });
  const env = {
    ...rules.env,
    BACKEND_TYPE: 'kvstore',
    KVSTORE_URL: `localhost:${server.port}`,
    KVSTORE_TLS: 'true',
    KVSTORE_STARTUP_INITIAL_INTERVAL: '20ms',
    KVSTORE_STARTUP_MAX_ELAPSED_TIME: '200ms',
  };
  await using untrusting = await WeirProcess.start({ env, awaitServing: false });
  expect(await untrusting.exited).toBe(1);
  expect(untrusting.output).toMatch(
    /unable to verify the first certificate|self-signed certificate in certificate chain/,
  );
  await using weir = await WeirProcess.start({ env: { ...env, SSL_CERT_FILE: join(folder, 'ca.pem') } });
  const body = '{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"ann"}]}]}';
  expect(await (await weir.http('/json', { method: 'POST', body })).json()).toMatchObject({ overallCode: 'OK' });
});

test('an xDS server with TLS and no CA file is trusted only by the operating system', async () => {
  const cache = new SnapshotCache();
  cache.publish('1', [simpleResource('shop', 5)]);
  const { cert, key } = authority.issue('localhost');
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
  await using server = await AdsServer.start({ cache, credentials: ServerCredentials.createSsl(null, [pair]) });
  const env = {
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: `localhost:${server.port}`,
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
  };
  await using untrusting = await WeirProcess.start({ env, awaitServing: false });
  expect(await untrusting.line(/no stream from the xDS server/)).toMatch(/certificate/);
  await using weir = await WeirProcess.start({ env: { ...env, SSL_CERT_DIR: folder } });
  expect(await weir.debug('/rlconfig')).toContain('shop.');
});

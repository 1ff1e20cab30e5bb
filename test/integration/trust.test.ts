import { join } from 'node:path';
import { ServerCredentials } from '@grpc/grpc-js';
import { newAuthority } from '../support/data/certificates';
import { simpleResource } from '../support/data/rule-resources';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { WeirProcess } from '../support/processes/weir-process';
import { AdsServer, SnapshotCache } from '../support/servers/ads-server';

const folder = new TemporaryFolder();
const authority = newAuthority();
const { cert, key } = authority.issue('localhost');
authority.dispose();
const CA = folder.at('ca.pem');
for (const [name, text] of Object.entries({ 'ca.pem': authority.ca, 'cert.pem': cert, 'key.pem': key })) {
  folder.write(name, text);
}
afterAll(() => folder[Symbol.dispose]());

// What the variables of the operating system may contain is tested in net/trusted-roots.test.ts.
test('Redis with TLS and no CA file is trusted only by the operating system', async () => {
  const own = ['--tls-cert-file', folder.at('cert.pem'), '--tls-key-file', folder.at('key.pem')];
  await using server = await RedisProcess.start({
    isTls: true,
    directives: [...own, '--tls-auth-clients', 'no', '--tls-ca-cert-file', CA],
    control: { tls: { ca: authority.ca, checkServerIdentity: () => undefined } },
  });
  const env = {
    RUNTIME_ROOT: join(__dirname, '../../examples'),
    RUNTIME_WATCH_ROOT: 'false',
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
  await using weir = await WeirProcess.start({ env: { ...env, SSL_CERT_FILE: CA } });
  expect((await weir.http('/healthcheck')).status).toBe(200);
});

test('an xDS server with TLS and no CA file is trusted only by the operating system', async () => {
  const cache = new SnapshotCache();
  cache.publish('1', [simpleResource('shop', 5)]);
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
  await using server = await AdsServer.start({ cache, credentials: ServerCredentials.createSsl(null, [pair]) });
  const env = {
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: `localhost:${server.port}`,
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
  };
  await using untrusting = await WeirProcess.start({ env, awaitServing: false });
  expect(await untrusting.line(/no stream from the xDS server/)).toMatch(/certificate/);
  await using weir = await WeirProcess.start({ env: { ...env, SSL_CERT_DIR: folder.base } });
  expect(await weir.debug('/rlconfig')).toContain('shop.');
});

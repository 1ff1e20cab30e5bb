import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServerCredentials } from '@grpc/grpc-js';
import { type Authority, type Certificate, newAuthority } from '../../support/data/certificates';
import { AdsServer, SnapshotCache } from '../../support/servers/ads-server';
import { simpleResource } from '../../support/data/rule-resources';
import { XdsRules } from '../../support/data/xds-rules';
import { summary } from '../../sources/rule-files/summary';

let authority: Authority;
let stranger: Authority;
let server: Certificate;
let client: Certificate;
let folder: string;

beforeAll(async () => {
  authority = newAuthority();
  stranger = newAuthority();
  server = authority.issue('localhost', 'xds.example');
  client = authority.issue('weir');
  folder = await mkdtemp(join(tmpdir(), 'weir-xds-tls-'));
});

afterAll(async () => {
  authority.dispose();
  stranger.dispose();
  await rm(folder, { recursive: true, force: true });
});

async function file(name: string, content: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

async function files(shown: Certificate | undefined = client, ca = authority.ca) {
  return {
    ca: await file('ca.pem', ca),
    certificate: shown && (await file('client.pem', shown.cert)),
    key: shown && (await file('client.key', shown.key)),
    serverName: undefined as string | undefined,
  };
}

function serve({ cert, key }: Certificate, demandsCertificate: boolean): Promise<AdsServer> {
  const cache = new SnapshotCache();
  cache.publish('1', [simpleResource('shop', 5)]);
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
  return AdsServer.start({
    cache,
    credentials: ServerCredentials.createSsl(Buffer.from(authority.ca), [pair], demandsCertificate),
  });
}

test('rules come over TLS with a client certificate and a CA of its own', async () => {
  await using ads = await serve(server, true);
  using rules = new XdsRules({ target: `localhost:${ads.port}`, tls: await files() });
  expect(summary(await rules.next())).toBe('shop=5');
});

test('the name of the SAN override takes the place of the host, in the certificate and in what the server is called', async () => {
  await using ads = await serve(server, true);
  using rules = new XdsRules({ target: ads.address, tls: { ...(await files()), serverName: 'xds.example' } });
  expect(summary(await rules.next())).toBe('shop=5');
  expect((await ads.nextStream()).authority).toBe('xds.example');
});

test.each([
  [
    'another name than the override',
    async () => ({ ...(await files()), serverName: 'other.example' }),
    /Hostname\/IP does not match|altnames/,
  ],
  ['a CA that is not known', async () => files(client, stranger.ca), /unable to verify|self-signed|unable to get/],
])('a server with %s gives no rules, and the log says why', async (_, tlsOf, reason) => {
  await using ads = await serve(server, false);
  using rules = new XdsRules({ target: `localhost:${ads.port}`, tls: await tlsOf() });
  expect(await rules.log.line(/^warn/)).toMatch(reason);
  expect(ads.streamCount).toBe(0);
});

test('without the client certificate that a server demands there is no stream', async () => {
  await using ads = await serve(server, true);
  using rules = new XdsRules({
    target: `localhost:${ads.port}`,
    tls: { ...(await files()), certificate: undefined, key: undefined },
  });
  await rules.log.line(/^warn no stream/);
  expect(ads.streamCount).toBe(0);
});

test('renewed files are used from the next connection on; broken ones leave those before in use, with a warning', async () => {
  await using ads = await serve(server, true);
  const tls = await files(stranger.issue('weir'));
  using rules = new XdsRules({ target: `localhost:${ads.port}`, tls });
  await rules.log.line(/^warn no stream/);
  await files(client);
  expect(summary(await rules.next())).toBe('shop=5');
  await file('client.key', 'half a k');
  (await ads.nextStream()).end();
  expect(await rules.log.line(/^warn cannot use the new TLS/)).toBe(
    'warn cannot use the new TLS files for the xDS server; keeping the previous ones',
  );
  await ads.nextStream();
});

test.each([
  [
    'a CA file without certificates',
    async () => ({ ...(await files()), ca: await file('junk.pem', 'no certificate') }),
    /the CA file contains no certificate in PEM format/,
  ],
  [
    'a CA file that is broken',
    async () => ({ ...(await files()), ca: await file('junk.pem', authority.ca.replace(/\n(\w{20})/, '\nAAAA')) }),
    /the CA file contains an invalid certificate/,
  ],
  ['a file that is missing', async () => ({ ...(await files()), key: join(folder, 'none.key') }), /ENOENT.*none\.key/],
  [
    'a key of another certificate',
    async () => ({ ...(await files()), key: await file('other.key', server.key) }),
    /key values mismatch/,
  ],
])('%s is told and tried again', async (_, tlsOf, reason) => {
  await using ads = await serve(server, true);
  using rules = new XdsRules({ target: `localhost:${ads.port}`, tls: await tlsOf() });
  expect(await rules.log.line(/^warn no stream/)).toMatch(reason);
  expect(ads.streamCount).toBe(0);
});

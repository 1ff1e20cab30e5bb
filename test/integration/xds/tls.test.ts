import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServerCredentials } from '@grpc/grpc-js';
import { type Authority, type Certificate, newAuthority } from '../../support/data/certificates';
import { AdsServer, SnapshotCache } from '../../support/servers/ads-server';
import { replaceFile } from '../../support/data/replace-file';
import { simpleResource } from '../../support/data/rule-resources';
import { XdsRules } from '../../support/data/xds-rules';
import { summary } from '../../sources/rule-files/watched-rules';

let authority: Authority;
let otherAuthority: Authority;
let server: Certificate;
let client: Certificate;
let folder: string;

beforeAll(async () => {
  authority = newAuthority();
  otherAuthority = newAuthority();
  server = authority.issue('localhost', 'xds.example');
  client = authority.issue('weir');
  folder = await mkdtemp(join(tmpdir(), 'weir-xds-tls-'));
});

afterAll(async () => {
  authority.dispose();
  otherAuthority.dispose();
  await rm(folder, { recursive: true, force: true });
});

async function file(name: string, content: string): Promise<string> {
  const path = join(folder, name);
  // A file that is read while it is empty would be another reason for a warning.
  await replaceFile(path, content);
  return path;
}

async function files(certificate: Certificate | undefined = client, ca = authority.ca) {
  return {
    ca: await file('ca.pem', ca),
    certificate: certificate && (await file('client.pem', certificate.cert)),
    key: certificate && (await file('client.key', certificate.key)),
    serverName: undefined as string | undefined,
    variables: { ca: 'CA_VARIABLE', certificate: 'CERTIFICATE_VARIABLE', key: 'KEY_VARIABLE' },
  };
}

function serve({ cert, key }: Certificate, requiresCertificate: boolean): Promise<AdsServer> {
  const cache = new SnapshotCache();
  cache.publish('1', [simpleResource('shop', 5)]);
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
  return AdsServer.start({
    cache,
    credentials: ServerCredentials.createSsl(Buffer.from(authority.ca), [pair], requiresCertificate),
  });
}

test('rules are loaded over TLS with a client certificate and a custom CA', async () => {
  await using ads = await serve(server, true);
  using rules = new XdsRules({ target: `localhost:${ads.port}`, tls: await files() });
  expect(summary(await rules.next())).toBe('shop=5');
});

test('the name of the SAN override replaces the host name in the certificate check and in the :authority header', async () => {
  await using ads = await serve(server, true);
  using rules = new XdsRules({ target: ads.address, tls: { ...(await files()), serverName: 'xds.example' } });
  expect(summary(await rules.next())).toBe('shop=5');
  expect((await ads.nextStream()).authority).toBe('xds.example');
});

test.each([
  [
    'a name other than the override',
    async () => ({ ...(await files()), serverName: 'other.example' }),
    /Hostname\/IP does not match|altnames/,
  ],
  ['an unknown CA', async () => files(client, otherAuthority.ca), /unable to verify|self-signed|unable to get/],
])('a server with %s provides no rules, and the log says why', async (_, tlsOf, reason) => {
  await using ads = await serve(server, false);
  using rules = new XdsRules({ target: `localhost:${ads.port}`, tls: await tlsOf() });
  expect(await rules.log.line(/^warn/)).toMatch(reason);
  expect(ads.streamCount).toBe(0);
});

test('a stream cannot be opened without the client certificate that the server requires', async () => {
  await using ads = await serve(server, true);
  using rules = new XdsRules({
    target: `localhost:${ads.port}`,
    tls: { ...(await files()), certificate: undefined, key: undefined },
  });
  await rules.log.line(/^warn no stream/);
  expect(ads.streamCount).toBe(0);
});

test('renewed files are used from the next connection on, and invalid ones are ignored with a warning', async () => {
  await using ads = await serve(server, true);
  const tls = await files(otherAuthority.issue('weir'));
  using rules = new XdsRules({ target: `localhost:${ads.port}`, tls });
  await rules.log.line(/^warn no stream/);
  await files(client);
  expect(summary(await rules.next())).toBe('shop=5');
  await file('client.key', 'half a k');
  (await ads.nextStream()).end();
  expect(await rules.log.line(/^warn cannot use the new TLS/)).toBe(
    'warn cannot use the new TLS files for the xDS server; keeping the previous ones',
  );
  const stream = await ads.nextStream();
  await files(client);
  stream.end();
  await ads.nextStream();
  // A connection attempt may fall between the writes of a new certificate and its key: each such trouble has its end as well.
  const lines = rules.log.lines.filter((line) => line.includes('TLS files'));
  expect(lines).toEqual(
    lines.map((_, index) =>
      index % 2 === 0
        ? 'warn cannot use the new TLS files for the xDS server; keeping the previous ones'
        : 'warn the TLS files for the xDS server are valid again',
    ),
  );
  expect(lines.length % 2).toBe(0);
});

test.each([
  [
    'a CA file without certificates',
    async () => ({ ...(await files()), ca: await file('junk.pem', 'no certificate') }),
    /CA_VARIABLE=.*junk\.pem contains no certificate in PEM format/,
  ],
  [
    'an invalid CA file',
    async () => ({ ...(await files()), ca: await file('junk.pem', authority.ca.replace(/\n(\w{20})/, '\nAAAA')) }),
    /CA_VARIABLE=.*junk\.pem contains an invalid certificate/,
  ],
  [
    'a missing file',
    async () => ({ ...(await files()), key: join(folder, 'none.key') }),
    /KEY_VARIABLE=.*none\.key cannot be read: ENOENT/,
  ],
  [
    'a key of another certificate',
    async () => ({ ...(await files()), key: await file('other.key', server.key) }),
    /CERTIFICATE_VARIABLE=.*client\.pem and KEY_VARIABLE=.*other\.key cannot be used together: .*key values mismatch/,
  ],
])('%s is logged and retried', async (_, tlsOf, reason) => {
  await using ads = await serve(server, true);
  using rules = new XdsRules({ target: `localhost:${ads.port}`, tls: await tlsOf() });
  expect(await rules.log.line(/^warn no stream/)).toMatch(reason);
  expect(ads.streamCount).toBe(0);
});

import { ServerCredentials } from '@grpc/grpc-js';
import type { AdsTls } from '../../../src/sources/xds/connect-ads';
import { type Certificate, newAuthority } from '../../support/data/certificates';
import { simpleResource } from '../../support/data/rule-resources';
import { RuleTree } from '../../support/data/rule-tree';
import { XdsRules } from '../../support/data/xds-rules';
import { AdsServer, SnapshotCache } from '../../support/servers/ads-server';
import { summary } from '../../sources/rule-files/watched-rules';

const [authority, other] = [newAuthority(), newAuthority()];
const [server, client] = [authority.issue('localhost', 'xds.example'), authority.issue('weir')];
const folder = new RuleTree();
beforeEach(() => write(client));
afterAll(() => {
  for (const each of [authority, other]) each.dispose();
  folder[Symbol.dispose]();
});

function file(name: string, content: string): string {
  folder.write(name, content);
  return folder.at(name);
}

/** The files of a client with this certificate. */
function write({ cert, key }: Certificate, ca = authority.ca): void {
  for (const [name, content] of Object.entries({ 'ca.pem': ca, 'client.pem': cert, 'client.key': key }))
    file(name, content);
}

/** Paths instead of the usual ones; undefined: the file is not set. */
type Other = Partial<Readonly<Record<'ca' | 'cert' | 'key' | 'serverName', string | undefined>>>;

function tls({ serverName, ...paths }: Other = {}): AdsTls {
  const usual = { ca: folder.at('ca.pem'), cert: folder.at('client.pem'), key: folder.at('client.key') };
  function named(name: keyof typeof usual) {
    const path = { ...usual, ...paths }[name];
    return path === undefined ? undefined : { path, name: `${name.toUpperCase()}=${path}` };
  }
  return { files: { ca: named('ca'), cert: named('cert'), key: named('key') }, serverName };
}

function credentialsOf(ca: string, { cert, key }: Certificate, requiresCertificate = true): ServerCredentials {
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
  return ServerCredentials.createSsl(Buffer.from(ca), [pair], requiresCertificate);
}

function serve(requiresCertificate = true): Promise<AdsServer> {
  const cache = new SnapshotCache();
  cache.publish('1', [simpleResource('shop', 5)]);
  return AdsServer.start({ cache, credentials: credentialsOf(authority.ca, server, requiresCertificate) });
}

test('rules are loaded over TLS with a client certificate, a CA, and a name that replaces the host name', async () => {
  await using ads = await serve();
  using byHost = new XdsRules({ target: `localhost:${ads.port}`, tls: tls() });
  expect(summary(await byHost.next())).toBe('shop=5');
  expect((await ads.nextStream()).authority).toBe(`localhost:${ads.port}`);
  using byName = new XdsRules({ target: ads.address, tls: tls({ serverName: 'xds.example' }) });
  expect(summary(await byName.next())).toBe('shop=5');
  expect((await ads.nextStream()).authority).toBe('xds.example');
});

test.each<[what: string, filesOf: () => Other, reason: RegExp, requiresCertificate?: boolean]>([
  ['another name of the server', () => ({ serverName: 'other.example' }), /does not match|altnames/, false],
  ['an unknown CA', () => ({ ca: file('other.pem', other.ca) }), /unable to verify|self-signed|unable to get/, false],
  ['no client certificate', () => ({ cert: undefined, key: undefined }), /no stream/],
  [
    'a CA file without certificates',
    () => ({ ca: file('junk.pem', 'no certificate') }),
    /CA=\S+junk\.pem is not a certificate in PEM format/,
  ],
  [
    'a damaged CA file',
    () => ({ ca: file('junk.pem', authority.ca.replace(/\n\w{20}/, '\nAAAA')) }),
    /CA=\S+junk\.pem is not a certificate in PEM format/,
  ],
  ['a missing file', () => ({ key: folder.at('none.key') }), /KEY=\S+none\.key: it cannot be read \(ENOENT\)/],
  [
    'a key of another certificate',
    () => ({ key: file('other.key', server.key) }),
    /KEY=\S+other\.key is not the key of CERT=\S+client\.pem/,
  ],
])('no rules are loaded with %s, and the log says why', async (_, filesOf, reason, requiresCertificate = true) => {
  await using ads = await serve(requiresCertificate);
  using rules = new XdsRules({ target: `localhost:${ads.port}`, tls: tls(filesOf()) });
  expect(await rules.log.line(/^warn no stream/)).toMatch(reason);
  expect(ads.streamCount).toBe(0);
});

test('a stream keeps its connection while certificates of another authority replace its files, which the next uses', async () => {
  const cache = new SnapshotCache();
  cache.publish('1', [simpleResource('shop', 5)]);
  const first = await AdsServer.start({ cache, credentials: credentialsOf(authority.ca, server) });
  using rules = new XdsRules({ target: `localhost:${first.port}`, tls: tls() });
  expect(summary(await rules.next())).toBe('shop=5');
  write(other.issue('weir'), other.ca);
  cache.publish('2', [simpleResource('shop', 6)]);
  expect(summary(await rules.next())).toBe('shop=6');
  expect(first.streamCount).toBe(1);
  await first[Symbol.asyncDispose]();
  cache.publish('3', [simpleResource('shop', 7)]);
  const credentials = credentialsOf(other.ca, other.issue('localhost'));
  await using _ = await AdsServer.start({ cache, credentials, port: first.port });
  expect(summary(await rules.next())).toBe('shop=7');
});

test('renewed files are used from the next connection on, and invalid ones are ignored with a warning', async () => {
  await using ads = await serve();
  write(other.issue('weir'));
  using rules = new XdsRules({ target: `localhost:${ads.port}`, tls: tls() });
  await rules.log.line(/^warn no stream/);
  write(client);
  expect(summary(await rules.next())).toBe('shop=5');
  file('client.key', 'half a k');
  (await ads.nextStream()).end();
  const rejected = 'warn cannot use the new TLS files for the xDS server; keeping the previous ones';
  expect(await rules.log.line(/TLS files/)).toBe(rejected);
  const stream = await ads.nextStream();
  write(client);
  stream.end();
  await ads.nextStream();
  const lines = rules.log.short.filter((line) => line.includes('TLS files'));
  expect(lines).toEqual([rejected, 'notice the TLS files for the xDS server are valid again']);
});

import dns from 'node:dns/promises';
import { createServer } from 'node:http';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { peersAt } from '../../../src/http/operators/peers';
import { isPrivateAddress } from '../../../src/net/private-addresses';
import { parsePeer } from '../../../src/settings/values/addresses';
import { newAuthority } from '../../support/data/certificates';
import { LocalServer } from '../../support/servers/local-server';
import { ServedApi } from './served-api';

const servers: LocalServer[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]();
});

const TOKEN = 'token-of-these-tests';

/** What each peer of these addresses answers, or why it does not. */
async function answersOf(texts: readonly string[], token: string | undefined = TOKEN, ca: string[] = []) {
  const find = peersAt({
    addresses: texts.map((text) => parsePeer(text)!),
    currentToken: () => token,
    trust: () => ({ context: createSecureContext({ ca }) }),
  });
  const answers = (await find()).map(async ({ address, ask }) => {
    const answer = await ask().catch(({ message }: Error) => message);
    return [address, answer] as const;
  });
  return Promise.all(answers);
}

/** A resolver that knows one name. */
function resolving(name: string, ...addresses: readonly string[]): jest.SpyInstance {
  return jest.spyOn(dns, 'lookup').mockImplementation((async (host: string) => {
    if (isIP(host) !== 0) return [{ address: host, family: isIP(host) }];
    if (host !== name) throw Object.assign(new Error('unknown'), { code: 'ENOTFOUND' });
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  }) as never);
}

/** A server that keeps the headers of its requests, and answers each with a text. */
async function recording(text = '{}') {
  const headers: unknown[] = [];
  const server = createServer((req, res) => {
    headers.push([req.url, req.headers.host, req.headers.authorization]);
    res.end(text);
  });
  const local = await new LocalServer(server).listen();
  servers.push(local);
  return { headers, server: local };
}

it('a peer is asked for its report with the token, at the address that its name has', async () => {
  await using api = await ServedApi.start({}, () => TOKEN);
  const address = `127.0.0.1:${api.server.port}`;
  expect(await answersOf([address])).toMatchObject([[address, { id: 'this', version: '1.2.3' }]]);
  expect(await answersOf([address], 'another-token-of-these-tests')).toEqual([
    [address, 'the operator token is wrong'],
  ]);
  // The listener does not know this name, but every address.
  resolving('weir-1.example', '127.0.0.1');
  const named = `http://weir-1.example:${api.server.port}`;
  expect(await answersOf([named])).toMatchObject([[named, { id: 'this' }]]);
});

it('each address of a name with `dns:` is a peer; a name that has none is one that does not answer', async () => {
  const { server, headers } = await recording();
  resolving('weir-peers', '127.0.0.1', '127.0.0.2');
  const { port } = server;
  expect(await answersOf([`dns:weir-peers:${port}`, 'dns:nothing:1', 'nothing:1'])).toEqual([
    [`127.0.0.1:${port}`, {}],
    [`127.0.0.2:${port}`, expect.stringContaining('ECONNREFUSED')],
    ['dns:nothing:1', 'its name cannot be looked up (ENOTFOUND)'],
    ['nothing:1', 'its name cannot be looked up (ENOTFOUND)'],
  ]);
  expect(headers).toEqual([['/api/instance', `127.0.0.1:${port}`, `Bearer ${TOKEN}`]]);
});

it('the token goes to no public address without TLS, and nothing is sent there', async () => {
  const refused = 'it is not asked, as the operator token is sent only over TLS, or to loopback and private addresses';
  resolving('weir-peers', '203.0.113.1');
  const texts = ['203.0.113.1:6070', 'weir-peers:6070'];
  jest.spyOn(dns, 'lookup').mockResolvedValue([{ address: '203.0.113.1', family: 4 }] as never);
  expect(await answersOf(texts)).toEqual(texts.map((text) => [text, refused]));
});

it.each([
  ['127.0.0.1', true],
  ['127.255.255.255', true],
  ['10.1.2.3', true],
  ['172.16.0.1', true],
  ['172.32.0.1', false],
  ['192.168.1.1', true],
  ['192.169.1.1', false],
  ['169.254.169.254', false],
  ['8.8.8.8', false],
  ['::1', true],
  ['fd00::1', true],
  ['fe80::1', false],
  ['2001:db8::1', false],
  ['::ffff:10.0.0.1', true],
  ['::ffff:8.8.8.8', false],
])('%s is a private address: %s', (address, expected) => {
  expect(isPrivateAddress(address)).toBe(expected);
});

it('over TLS, the certificate must have the name or the address of the setting, with `dns:` the name in DNS', async () => {
  const authority = newAuthority();
  const tls = authority.issue('weir-peers', '127.0.0.1');
  await using api = await ServedApi.start({ tls }, () => TOKEN);
  authority.dispose();
  resolving('weir-peers', '127.0.0.1');
  const { port } = api.server;
  const right = [`https://127.0.0.1:${port}`, `https://weir-peers:${port}`, `dns:https://weir-peers:${port}`];
  expect((await answersOf(right, TOKEN, [authority.ca])).map(([, answer]) => answer)).toMatchObject(
    Array(3).fill({ id: 'this' }),
  );
  resolving('other-name', '127.0.0.1');
  expect(await answersOf([`dns:https://other-name:${port}`], TOKEN, [authority.ca])).toEqual([
    [`127.0.0.1:${port}`, expect.stringContaining("does not match certificate's altnames")],
  ]);
  expect(await answersOf([right[0]!])).toEqual([
    [right[0], 'its certificate is not accepted: UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  ]);
  expect(await answersOf([`127.0.0.1:${port}`])).toEqual([[`127.0.0.1:${port}`, 'other side closed']]);
});

it('an answer that is too long or is none of weir is the reason why there is no report', async () => {
  const long = await recording('x'.repeat(300_000));
  const other = await recording('<html>');
  expect(await answersOf([long.server.address, other.server.address])).toEqual([
    [long.server.address, 'its answer has more than 262144 bytes'],
    [other.server.address, 'it is not the debug listener of weir: it answered with status 200'],
  ]);
});

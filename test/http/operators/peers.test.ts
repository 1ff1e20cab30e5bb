import dns from 'node:dns/promises';
import { createServer } from 'node:http';
import { createServer as createTcpServer, isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { peersAt } from '../../../src/http/operators/peers';
import { readReport } from '../../../src/http/operators/read-report';
import { isPrivateAddress } from '../../../src/net/private-addresses';
import { parsePeer } from '../../../src/settings/values/addresses';
import { newAuthority } from '../../support/data/certificates';
import { listedOffender } from '../../support/data/offenders';
import { LARGEST_ANSWERS, reportOf } from '../../support/servers/large-peers';
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
    const answer = await ask().then(
      ({ report }) => report,
      ({ message }: Error) => message,
    );
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

const REPORT = reportOf('a');

/** A report with an item in each of its lists. */
const FULL = reportOf('full', {
  health: {
    ...REPORT.health,
    ...{ unhealthy: ['a'], degraded: ['b'] },
    store: {
      ...{ state: 'amber', text: 'slow', todo: { text: 'look', link: 'docs/a.md' }, policy: 'allow' },
      since: '2026-02-03T04:05:06.000Z',
      servers: [
        {
          ...{ state: 'red', text: 'away', todo: null, server: 'a:1', store: 'main', isOpen: true },
          ...{ condition: 'away', since: '2026-02-03T04:05:06.000Z' },
          ...{ requests: 1, errors: 1, latency: 1 },
        },
      ],
    },
  },
  rules: {
    hits: [{ statisticsKey: 'a', hits: 1, over: 0, shadow: 0, calls: 1 }],
    denials: [{ statisticsKey: 'a', hits: 1, over: 1, shadow: 1, calls: 1 }],
  },
  offenders: {
    ...{ since: 1, floor: 0 },
    offenders: [listedOffender({ key: 'a', domain: 'b', rule: 'c', descriptor: 'd', since: 2, calls: 3 })],
  },
});

const NEWER_OF_CALLERS = ['statisticsKey', 'recent', 'calls', 'since', 'until', 'isZero'];

/** A server that keeps the headers of its requests, and answers each with a text. */
async function recording(text = JSON.stringify(REPORT)) {
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
    [`127.0.0.1:${port}`, REPORT],
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
    [
      other.server.address,
      'its answer is not that of an instance: $: expected a value (an object), got <html> (line 1, column 1)',
    ],
  ]);
});

/** A server that writes bytes of its own on each connection, again and again while it is open. */
async function writing(begin: string, again: string) {
  const server = createTcpServer((socket) => {
    function write(): void {
      while (again !== '' && socket.writable && socket.write(again));
    }
    socket.on('error', () => undefined).on('drain', write);
    socket.once('data', () => socket.write(begin, write));
  });
  const local = await new LocalServer(server).listen();
  servers.push(local);
  return local.address;
}

it('a server that answers without end, in tiny pieces, with interim responses or elsewhere is left at once', async () => {
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
  const endless = await writing(chunked, `10000\r\n${' '.repeat(65_536)}\r\n`);
  const tiny = await writing(chunked, '1\r\nx\r\n'.repeat(2_000));
  const interim = await writing('', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(100));
  const moved = await writing('HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n', '');
  const escapes = JSON.stringify({ detail: '\u001b'.repeat(20_000) });
  const detail = await writing(`HTTP/1.1 500 No\r\nContent-Length: ${escapes.length}\r\n\r\n${escapes}`, '');
  // One after the other: they write from this process, and each has a second.
  const answers: unknown[] = [];
  for (const address of [endless, tiny, interim, moved]) answers.push((await answersOf([address]))[0]![1]);
  expect(answers).toEqual([
    'its answer has more than 262144 bytes',
    'its answer is in pieces of fewer than 16 bytes',
    'it sent more than 8 interim responses',
    'it is not the debug listener of weir: it answered with status 302',
  ]);
  const [[, told]] = (await answersOf([detail])) as [[string, string]];
  expect(told).toMatch(/^(?:\\u001b){2000}…$/);
});

describe('of the report of a peer', () => {
  const valid = JSON.stringify(REPORT);

  it('all is kept, and members, items and texts beyond the bounds are dropped with a note', () => {
    expect(readReport(valid)).toEqual({ report: REPORT, note: null });
    const long = { name: 'x'.repeat(300), more: [[{}, '"]\\']], toString: 1 };
    const hits = Array.from({ length: 22 }, (_, hit) => ({
      statisticsKey: `${hit}`,
      hits: hit,
      over: 0,
      shadow: 0,
      calls: 1,
    }));
    const all = hits.map((hit) => ({ ...hit, more: {} }));
    const changed = reportOf('', { ...long, rules: { hits: all, denials: [] } });
    const { report, note } = readReport(JSON.stringify(changed));
    expect(note).toBe('of its answer, 1 ends of long texts and 22 unknown members and 2 rules were dropped');
    expect(report).toEqual({
      ...reportOf('', { rules: { hits: hits.slice(0, 20), denials: [] } }),
      name: expect.stringMatching(/^x{247}…[\da-f]{12}$/),
    });
  });

  it('every place where something else is, is named, and none is read that is no value of its kind', () => {
    const seen: string[] = [];
    let count = 0;
    /** Replaces the value at each place of the report by others. */
    function replaceEach(value: unknown, replace: (other: unknown) => unknown, place: string): void {
      for (const other of [null, [], {}, [null], 'x', -1, 0.5, 1e300, true]) {
        count += 1;
        const json = JSON.stringify(replace(other));
        let told = '';
        try {
          readReport(json);
        } catch (error) {
          told = String(error);
          expect(told).toContain('its answer is not that of an instance: $');
        }
        const isSame = typeof other === typeof value && Array.isArray(other) === Array.isArray(value) && other !== null;
        if (!isSame && told === '') seen.push(`${place}: ${JSON.stringify(other)}`);
        else if (typeof value === 'number' && (other === -1 || other === 1e300)) expect(told).not.toBe('');
      }
      if (typeof value !== 'object' || value === null) return;
      for (const name of Object.keys(value)) {
        function inner(other: unknown): unknown {
          if (Array.isArray(value)) return replace(value.with(Number(name), other));
          return replace({ ...(value as object), [name]: other });
        }
        replaceEach(Reflect.get(value, name), inner, `${place}.${name}`);
        if (Array.isArray(value) || place === '$.settings') continue;
        const { [name]: _, ...without } = value as Record<string, unknown>;
        // Older versions do not have these.
        const isPart = place.includes('.health') && name === 'since';
        const isCaller = place.includes('.offenders.offenders') && NEWER_OF_CALLERS.includes(name);
        const isRule = place.includes('.rules.') && ['shadow', 'calls'].includes(name);
        const isNewer = isPart || isCaller || isRule || name === (place.includes('.servers') ? 'condition' : 'changes');
        if (isNewer) readReport(JSON.stringify(replace(without)));
        else expect(() => readReport(JSON.stringify(replace(without)))).toThrow(`it lacks ${name}`);
      }
    }
    replaceEach(FULL, (report) => report, '$');
    expect(count).toBeGreaterThan(500);
    // What may be null, and one object for another one: of settings, any, and the prototype of none.
    expect(seen.filter((each) => !each.endsWith(': null'))).toEqual([]);
    expect(seen.map((each) => each.split(':')[0])).toEqual(
      expect.arrayContaining(['$.loaded', '$.rates', '$.latency', '$.health.store.policy', '$.offenders.since']),
    );
    expect(seen.map((each) => each.split(':')[0])).not.toContain('$.rules.hits.0');
  });

  it('settings are kept by names of settings alone, whatever else has the names of members of objects', () => {
    const settings = { LOG_LEVEL: 'info', __proto__: null, constructor: 'x', toString: 'y' };
    const json = valid.replace('"LOG_LEVEL":"info"', `"__proto__":{"a":1},${JSON.stringify(settings).slice(1, -1)}`);
    const { report, note } = readReport(json);
    expect([Object.entries(report.settings), note]).toEqual([
      [['LOG_LEVEL', 'info']],
      'of its answer, 3 settings were dropped',
    ]);
  });

  it('half of a character, where a text was cut off, is no error', () => {
    const name = '\ud83d';
    expect(readReport(JSON.stringify(reportOf(name))).report.name).toBe(name);
  });

  it.each(Object.entries(LARGEST_ANSWERS))('of the largest answer, full of %s, little is kept', (_, answerOf) => {
    const json = answerOf(1);
    expect(json.length).toBeGreaterThan(150_000);
    const { report, note } = readReport(json);
    expect(report.name).toBe('peer 1');
    expect(JSON.stringify(report).length).toBeLessThan(64 * 1024);
    expect(note).not.toBeNull();
  });
});

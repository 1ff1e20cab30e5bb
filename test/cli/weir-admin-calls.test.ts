import dns from 'node:dns';
import { isIP } from 'node:net';
import { ADMIN } from '../../src/cli/admin/admin';
import { callApi } from '../../src/cli/api';
import { SecretMount } from '../support/data/secret-mount';
import { ApiStub, LOOPBACK_IPV6, withIpv6 } from './api-stub';
import { runOf } from './run-program';
import { TOKEN, admin, recordingApi } from './admin-api';

/** What weir-admin health prints about a server that sends some bytes after the request, and then waits or ends. */
async function problemWith(bytes: string, ends = false): Promise<string> {
  await using api = await ApiStub.start(({ socket }) => void (ends ? socket.end(bytes) : socket.write(bytes)));
  const { exitCode, stdout, stderr } = await admin(api, 'health');
  expect([exitCode, stdout]).toEqual([1, '']);
  return stderr.replace(api.address, '<address>');
}

afterEach(() => void jest.restoreAllMocks());

describe('weir-admin prints what is wrong with an answer', () => {
  const OTHER = '<address> is not the debug listener of weir: it answered with status';
  const CALL = 'cannot call the API at <address>:';

  it.each([
    ['text', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK', `${OTHER} 200`],
    ['HTML', 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>', `${OTHER} 502`],
    [
      'a rejected name',
      'HTTP/1.1 421 X\r\nContent-Length: 47\r\n\r\n{"error":{"code":"x","message":"not\\u0007 so"}}',
      'not\\u0007 so',
    ],
    [
      'that a token is needed',
      'HTTP/1.1 401 X\r\nContent-Length: 40\r\n\r\n{"detail":"Authorization: Bearer <...>"}',
      'this needs the operator token: give -token_file, OPERATOR_TOKEN or OPERATOR_TOKEN_FILE',
    ],
    ['an error of another server', 'HTTP/1.1 500 X\r\nContent-Length: 14\r\n\r\n{"error":null}', `${OTHER} 500`],
    ['a redirect', 'HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n', `${OTHER} 307`],
    ['an upgrade', 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n', `${OTHER} 101`],
    ['TLS', '\u0015\u0003\u0001\u0000\u0002\u0002P', `${CALL} its answer is not HTTP/1.1 (Parse Error: Expected HTTP/`],
    [
      'no chunks',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz',
      `${CALL} its answer is not HTTP/1.1 (Parse Error: Invalid character in chunk size)`,
    ],
  ])('that is %s', async (_what, bytes, message) => {
    expect(await problemWith(bytes)).toContain(`weir-admin: ${message}`);
  });

  it.each(['', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{'])('that ends after %j', async (bytes) => {
    expect(await problemWith(bytes, true)).toBe(`weir-admin: ${CALL} other side closed\n`);
  });

  it('that does not arrive in time', async () => {
    await using api = await ApiStub.start((_request, response) => void response.writeHead(200).write('{"healthy":'));
    const answer = callApi({ address: api.address, token: undefined, timeoutMs: 100 }, { path: 'health' });
    await expect(answer).rejects.toThrow(`cannot call the API at ${api.address}: it did not answer in time`);
  });

  it('with the reason for every address of the host', async () => {
    const addresses = ['127.0.0.1', '::1'].map((address) => ({ address, family: isIP(address) }));
    function lookUp(_host: string, _options: unknown, found: (error: null, all: readonly object[]) => void): void {
      found(null, addresses);
    }
    jest.spyOn(dns, 'lookup').mockImplementation(lookUp as never);
    const { stderr } = await admin({ address: 'weir:1' }, 'health');
    expect(stderr).toMatch(/: connect ECONNREFUSED 127\.0\.0\.1:1; connect E[A-Z]+ ::1:1\b/);
  });
});

/** Starts an API on a port to which `fetch` sends nothing; others may be in use. */
async function onBlockedPort() {
  for (const port of [6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080]) {
    const api = await recordingApi({ port }).catch(() => undefined);
    if (api !== undefined) return api;
  }
  throw new Error('all of these ports are in use');
}

describe('weir-admin -address', () => {
  /** What the standard error has. */
  async function run(address: string, environment: NodeJS.ProcessEnv, flags: readonly string[] = []): Promise<string> {
    return (await runOf(ADMIN, ['health', '-address', address, ...flags], environment)).stderr;
  }

  it('rejects an address that is not host:port, and sends nothing', async () => {
    await using api = await recordingApi();
    const at = api.address;
    const shown: Readonly<Record<string, string>> = {
      [`http://${at}`]: `http://${at}`,
      [`${at}/x?`]: `${at}/x?***`,
      [`${at}#`]: `${at}#`,
      [`user:password@${at}`]: `***@${at}`,
      '127.0.0.1': '127.0.0.1',
      '127.0.0.1:65536': '127.0.0.1:65536',
      '::1:6070': '::1:6070',
      'a\u001b]0;x\u0007\nb:1': String.raw`a\u001b]0;x\u0007\nb:1`,
      '': '',
    };
    for (const [address, text] of Object.entries(shown)) {
      expect(await run(address, {})).toContain(
        `: invalid address "${text}": expected host:port or https://host:port\nRun weir-`,
      );
    }
    expect(api.requests).toEqual([]);
  });

  withIpv6('calls an IPv6 address in brackets, without its zone in the Host header', async () => {
    await using api = await recordingApi({ host: '::1' });
    expect(await run(api.address, {})).toBe('');
    expect(await run(api.address.replace('::1', `::1%${LOOPBACK_IPV6}`), {})).toBe('');
    expect(new Set(api.requests.map(({ headers }) => headers.host))).toEqual(new Set([api.address]));
  });

  it('has the port of DEBUG_PORT by default, which must be one that can be connected to', async () => {
    await using api = await recordingApi();
    const DEBUG_PORT = api.address.split(':')[1]!;
    expect((await runOf(ADMIN, ['health'], { DEBUG_PORT })).stderr).toBe('');
    expect(api.requests).toHaveLength(1);
    const message = 'DEBUG_PORT=0 is no port that can be connected to: set it, or give -address';
    const stderr = `weir-admin: ${message}\nRun weir-admin -h for its flags.\n`;
    expect(await runOf(ADMIN, ['health'], { DEBUG_PORT: '0' })).toEqual({ exitCode: 2, stdout: '', stderr });
  });

  it('calls a port that fetch does not', async () => {
    await using api = await onBlockedPort();
    await expect(fetch(`http://${api.address}/`)).rejects.toThrow('fetch failed');
    expect(await run(api.address, {})).toBe('');
  });

  it('sends the token of a file, without blanks around it', async () => {
    using secrets = new SecretMount({ token: ` ${TOKEN} \n` });
    await using api = await recordingApi();
    const file = secrets.path('token');
    expect(await run(api.address, { OPERATOR_TOKEN_FILE: file })).toBe('');
    expect(await run(api.address, { OPERATOR_TOKEN_FILE: `${file} ` })).toBe('');
    expect(await run(api.address, {}, ['-token_file', file])).toBe('');
    expect(new Set(api.requests.map(({ headers }) => headers.authorization))).toEqual(new Set([`Bearer ${TOKEN}`]));
  });

  it.each([
    ['of two lines', 'secret-line-1\nsecret-line-2'],
    ['with a blank', 'secret-line-1 secret-line-2'],
  ])('rejects a token %s without printing it', async (_what, text) => {
    using secrets = new SecretMount({ token: text });
    await using api = await recordingApi();
    const stderr = await run(api.address, { OPERATOR_TOKEN_FILE: secrets.path('token') });
    expect(stderr).toContain(
      ': cannot use the file of the operator token: it must contain 16 to 1024 visible ASCII ' +
        'characters, without blanks\n',
    );
    expect([api.requests, stderr]).toEqual([[], expect.not.stringContaining('secret-line')]);
  });
});

it('an invalid OPERATOR_TOKEN is rejected without printing it', async () => {
  expect(await runOf(ADMIN, ['health', '-address', '127.0.0.1:1'], { OPERATOR_TOKEN: 'öffentlich' })).toMatchObject({
    exitCode: 2,
    stderr:
      'weir-admin: OPERATOR_TOKEN is invalid; allowed: 16 to 1024 visible ASCII characters, without blanks\n' +
      'Run weir-admin -h for its flags.\n',
  });
});

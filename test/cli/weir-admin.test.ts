import dns from 'node:dns';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { ADMIN } from '../../src/cli/admin/admin';
import { callApi } from '../../src/cli/api';
import type {
  CounterLimit,
  CounterState,
  ExplainedDescriptor,
  Explanation,
  NestedRule,
  RulesAnswer,
} from '../../src/operators/answers';
import { SecretMount } from '../support/data/secret-mount';
import { ServedApi, always, configOf, rulesetOf } from '../http/operators/served-api';
import { ApiStub, LOOPBACK_IPV6, withIpv6 } from './api-stub';
import { CONTROL, HOSTILE, SHOWN } from '../support/data/hostile-text';
import { runOf } from './run-program';

const TOKEN = 'token-of-the-operators';
const ANSWER = { healthy: true, unhealthy: [], degraded: [], answer: null, error: null, descriptors: [] };
const DESCRIPTOR = ['-domain', 'd', '-descriptors', 'a=b'];
const RULE: NestedRule = {
  key: 'k',
  value: '',
  valueIn: null,
  valueCidr: null,
  valueRegex: null,
  place: null,
  limit: null,
  limits: null,
  allOrNothing: false,
  shadowMode: false,
  enforcePercent: null,
  quotaMode: false,
  onStoreFailure: null,
  shareThreshold: false,
  detailedMetric: false,
  valueToMetric: false,
  metadata: null,
  statisticsKey: 'd.k',
  totals: null,
  descriptors: [],
};

function rulesAnswer(rule: Partial<NestedRule>, domain = 'd'): RulesAnswer {
  const domains = [{ domain, unmatched: null, descriptors: [{ ...RULE, ...rule }] }];
  return { loaded: null, rejected: null, domains };
}

type ReceivedRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'>;

/** An API that answers every request with JSON, and keeps the requests. */
async function recordingApi(at: { readonly host?: string; readonly port?: number } = {}, json: unknown = ANSWER) {
  const requests: ReceivedRequest[] = [];
  const stub = await ApiStub.start(({ method, url, headers }, response) => {
    requests.push({ method, url, headers });
    response.end(JSON.stringify(json));
  }, at);
  return { requests, address: stub.address, [Symbol.asyncDispose]: () => stub[Symbol.asyncDispose]() };
}

function admin({ address }: { readonly address: string }, ...argv: readonly string[]) {
  return runOf(ADMIN, [...argv, '-address', address], {});
}

/** What weir-admin health prints about a server that sends some bytes after the request, and then waits or ends. */
async function problemWith(bytes: string, ends = false): Promise<string> {
  await using api = await ApiStub.start(({ socket }) => void (ends ? socket.end(bytes) : socket.write(bytes)));
  const { exitCode, stdout, stderr } = await admin(api, 'health');
  expect([exitCode, stdout]).toEqual([1, '']);
  return stderr.replace(api.address, '<address>');
}

afterEach(() => void jest.restoreAllMocks());

describe('weir-admin rules', () => {
  it('shows domains whatever their names are', async () => {
    const names = ['shop', 'shop.json', 'shop.json.json', 'a/b', '..'];
    const files = names.map((name, index) => [`${index}.yaml`, `domain: '${name}'\ndescriptors:\n- key: k\n`]);
    await using api = await ServedApi.start({ config$: always(configOf(rulesetOf(Object.fromEntries(files)))) });
    for (const domain of names) {
      const { stdout, stderr } = await admin({ address: `127.0.0.1:${api.server.port}` }, 'rules', '-domain', domain);
      expect([stdout.split('\n').slice(1), stderr]).toEqual([[domain, expect.stringMatching(/^ {2}k \(/), ''], '']);
    }
  });

  it('names the domains that there are when there is none of that name', async () => {
    const files = { 'a.yaml': 'domain: shop', 'b.yaml': 'domain: "\\u009b"' };
    await using api = await ServedApi.start({ config$: always(configOf(rulesetOf(files))) });
    const { exitCode, stderr } = await admin({ address: `127.0.0.1:${api.server.port}` }, 'rules', '-domain', 'nope');
    expect([exitCode, stderr]).toEqual([
      1,
      'weir-admin: the active rules have no such domain; their domains are shop, \\u009b\n',
    ]);
  });

  it('prints one hit as one', async () => {
    const totals = { hits: 1, within: 1, near: 0, over: 0, overByLocalCache: 0, shadow: 0 };
    await using api = await ApiStub.answering(rulesAnswer({ totals }));
    expect((await admin(api, 'rules')).stdout).toContain('\n  k, 1 hit, 0 over, 0 near\n');
  });

  it('prints the reason of a rejected load on its own lines', async () => {
    const rejected = { reason: 'a.yaml:1:2: bad\nb.yaml:3:4: worse\u009b2J' };
    await using api = await ApiStub.answering({ loaded: null, rejected, domains: [] });
    expect((await admin(api, 'rules')).stdout).toBe(
      'no rules are loaded\nthe last load was rejected: a.yaml:1:2: bad\nb.yaml:3:4: worse\\u009b2J\n',
    );
  });
});

it.each([
  ['0', 'limited callers are not counted: OFFENDERS_SIZE is 0\n'],
  ['1000', 'no caller is limited\n'],
])('weir-admin top without callers, with OFFENDERS_SIZE=%s', async (value, expected) => {
  await using api = await ServedApi.start({
    settings: [{ name: 'OFFENDERS_SIZE', source: 'default', value, documentation: null }],
  });
  expect((await admin({ address: `127.0.0.1:${api.server.port}` }, 'top')).stdout).toBe(expected);
});

it.each([
  [
    'explain',
    DESCRIPTOR,
    { answer: null, error: { message: 'no connection' }, descriptors: [] },
    1,
    'error: no connection',
  ],
  ['explain', DESCRIPTOR, { answer: { overallCode: 'OVER_LIMIT', reason: 'r' }, descriptors: [] }, 0, 'OVER_LIMIT: r'],
  ['health', [], { healthy: false, unhealthy: ['store'], degraded: [] }, 1, 'unhealthy: store'],
  [
    'health',
    [],
    { healthy: true, unhealthy: [], degraded: ['store degraded (allow)'] },
    0,
    'healthy; store degraded (allow)',
  ],
] as const)('weir-admin %s %j prints %j with the exit code %i', async (command, flags, answer, code, text) => {
  await using api = await ApiStub.answering(answer);
  expect(await admin(api, command, ...flags)).toEqual({ exitCode: code, stdout: `${text}\n`, stderr: '' });
});

describe('the counters of a rule with several limits', () => {
  const RULES = {
    'shop.yaml': `domain: shop
descriptors:
  - key: user
    rate_limits:
      - { unit: year, requests_per_unit: 3 }
      - { unit: hour, requests_per_unit: 40, algorithm: token_bucket, burst: 39 }
`,
  };
  const OF_ANN = ['-domain', 'shop', '-descriptors', 'user=ann'];

  it('are all printed without -window, and one of them with it', async () => {
    await using api = await ServedApi.start({ ruleset: rulesetOf(RULES) });
    const at = { address: `127.0.0.1:${api.server.port}` };
    const all = await admin(at, 'counter', 'get', ...OF_ANN);
    expect(all.stdout).toMatch(
      /^0\n {2}limit 3 per year\n.*\n.*\n39 tokens left\n {2}limit 40 per hour, token bucket, burst 39\n/,
    );
    const json = JSON.parse((await admin(at, 'counter', 'get', ...OF_ANN, '-json')).stdout) as readonly unknown[];
    expect(json).toMatchObject([{ window: 'year' }, { window: 'hour' }]);
    const one = await admin(at, 'counter', 'get', ...OF_ANN, '-window', 'hour');
    expect(one.stdout).toMatch(/^39 tokens left\n/);
  });

  it('are changed one at a time, with the tokens left before and after in the answer and in the log', async () => {
    const token = 'token-of-the-operators';
    await using api = await ServedApi.start({ ruleset: rulesetOf(RULES) }, () => token);
    async function run(...argv: readonly string[]) {
      const address = `127.0.0.1:${api.server.port}`;
      return runOf(ADMIN, [...argv, ...OF_ANN, '-address', address], { OPERATOR_TOKEN: token });
    }
    expect(await run('counter', 'clear')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('choose one by the parameter window: year, hour') as unknown,
    });
    expect((await run('counter', 'set', '-count', '18', '-window', 'hour')).stdout).toMatch(/^39 -> 18 tokens left\n/);
    expect((await run('counter', 'clear', '-window', 'hour')).stdout).toMatch(/^18 -> 39 tokens left\n/);
    const { message, fields } = api.log.lines.at(-1)!;
    expect([message, fields]).toMatchObject([
      'counter cleared by an operator',
      { window: 'hour', before: 18, after: 39 },
    ]);
  });
});

it.each([
  ['helth', 'unexpected argument "helth"; the commands are rules, explain, counter get, '],
  ['', 'a command is required; the commands are rules, '],
  ['explain', 'flag -domain is required\n'],
  ['explain -domain d', 'flag -descriptors is required\n'],
  ['counter set -domain d -descriptors a=b', 'flag -count requires a whole number\n'],
  ['counter get -domain d -descriptors a=b -descriptors a=b', 'a counter is that of one descriptor'],
  ['counter get -domain d -descriptors a', 'invalid descriptor "a": expected name=value'],
  ['health -token_file /nonexistent', 'cannot use the file of the operator token: it cannot be read (ENOENT)'],
])('weir-admin rejects the command line "%s"', async (line, message) => {
  const { exitCode, stdout, stderr } = await runOf(ADMIN, line === '' ? [] : line.split(' '), {});
  expect([exitCode, stdout, stderr.split('\n').slice(1)]).toEqual([2, '', ['Run weir-admin -h for its flags.', '']]);
  expect(stderr).toContain(`weir-admin: ${message}`);
});

it('weir-admin sends one request with its method, headers and body, and closes its connection', async () => {
  await using api = await recordingApi();
  await runOf(ADMIN, ['health', '-address', api.address], { OPERATOR_TOKEN: TOKEN });
  const headers = { host: api.address, connection: 'close', authorization: `Bearer ${TOKEN}` };
  expect(api.requests).toEqual([{ method: 'GET', url: '/api/health', headers: expect.objectContaining(headers) }]);
  await runOf(ADMIN, ['counter', 'set', ...DESCRIPTOR, '-count', '2', '-address', api.address], {
    OPERATOR_TOKEN: TOKEN,
  });
  const body = { 'content-type': 'application/json', 'content-length': expect.stringMatching(/^\d+$/) };
  expect(api.requests[1]).toMatchObject({ method: 'PUT', url: '/api/counters', headers: { ...headers, ...body } });
});

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
      expect(await run(address, {})).toContain(`: invalid address "${text}": expected host:port\nRun weir-`);
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
      ': cannot use the file of the operator token: it must contain 16 to 1024 visible ASCII characters, without blanks\n',
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

describe('weir-admin prints no control characters of a server', () => {
  const LIMIT: CounterLimit = {
    requestsPerUnit: 1,
    unit: 'HOUR',
    unitMultiplier: 1,
    calendar: null,
    algorithm: null,
    burst: null,
    name: HOSTILE,
  };
  const RULES = rulesAnswer(
    {
      key: HOSTILE,
      value: HOSTILE,
      place: { file: HOSTILE, line: 1, column: 2 },
      limit: { ...LIMIT, unlimited: false, replaces: [] },
    },
    HOSTILE,
  );
  const EXPLAINED: ExplainedDescriptor = {
    entries: [{ key: HOSTILE, value: HOSTILE }],
    steps: [{ key: HOSTILE, value: HOSTILE, candidates: [], otherValues: 0, keys: [HOSTILE], omitted: 0 }],
    outcome: 'limit',
    reason: HOSTILE,
    status: null,
    counter: {
      ...LIMIT,
      cacheKey: HOSTILE,
      shadowMode: false,
      enforcePercent: null,
      quotaMode: false,
      onStoreFailure: 'error',
      hits: 1,
      isNegativeHits: false,
      isInLocalCache: false,
      answeredByPolicy: null,
      count: 0,
      countAfter: 1,
      openReservations: null,
      windowStart: '2026-01-01T00:00:00.000Z',
      resetAt: HOSTILE,
    },
    otherCounters: [],
    rule: { statisticsKey: HOSTILE, key: HOSTILE, value: HOSTILE, place: null },
    replacedBy: null,
    nearest: null,
  };
  const EXPLANATION: Explanation = {
    domain: 'd',
    at: '2026-01-01T00:00:00.000Z',
    answer: { overallCode: 'OK', reason: HOSTILE, responseHeaders: [] },
    error: null,
    descriptors: [EXPLAINED],
  };
  const COUNTER: CounterState = {
    ...LIMIT,
    cacheKey: HOSTILE,
    rule: null,
    window: 'hour',
    windows: ['hour'],
    count: 1,
    timeToLive: null,
    windowStart: '2026-01-01T00:00:00.000Z',
    windowEnd: HOSTILE,
    isInLocalCache: false,
    openReservations: null,
  };
  const OPEN = { id: HOSTILE, hits: 2, expiresAt: '2026-01-01T00:00:00.000Z', onExpiry: 'cancel' };

  it.each([
    ['top', { offenders: [{ domain: 'd', rule: 'r', descriptor: HOSTILE, limited: 3, isShadow: false }] }, [], 1],
    ['rules', RULES, [], 3],
    ['explain', EXPLANATION, DESCRIPTOR, 7],
    ['counter get', COUNTER, DESCRIPTOR, 4],
    ['counter get', { ...COUNTER, openReservations: { count: 3, first: [OPEN] } }, DESCRIPTOR, 6],
    ['health', { healthy: false, unhealthy: [HOSTILE], degraded: [] }, [], 1],
  ])('with %s', async (command, answer, flags, lines) => {
    await using api = await ApiStub.answering(answer);
    const { stdout } = await admin(api, ...command.split(' '), ...flags);
    expect(stdout).toContain(SHOWN);
    expect(stdout).not.toMatch(CONTROL);
    expect(stdout.split('\n')).toHaveLength(lines + 1);
  });

  it('with -json, which escapes them, and with an error', async () => {
    const health = { healthy: true, unhealthy: [HOSTILE], degraded: [] };
    await using api = await ApiStub.answering(health);
    const { stdout } = await admin(api, 'health', '-json');
    expect([JSON.parse(stdout), stdout]).toEqual([health, expect.not.stringMatching(CONTROL)]);
    await using failing = await ApiStub.answering({ detail: HOSTILE }, 400);
    expect((await admin(failing, 'health')).stderr).toBe(`weir-admin: ${SHOWN}\n`);
  });
});

import { createHash } from 'node:crypto';
import { SecretMount } from '../support/data/secret-mount';
import { ADMIN } from '../../src/cli/admin/admin';
import { ServedApi, always, configOf, rulesetOf } from '../http/operators/served-api';
import { listedOffender } from '../support/data/offenders';
import { ApiStub } from './api-stub';
import { CONTROL, HOSTILE, SHOWN } from '../support/data/hostile-text';
import { runOf } from './run-program';
import { HEALTH, TOKEN, admin, recordingApi } from './admin-api';

const DESCRIPTOR = ['-domain', 'd', '-descriptors', 'a=b'];

/** A rule in whose answers the word `mark` is each text of a rule file or a caller. */
const MARKED = {
  'mark.yaml':
    'domain: mark\ndescriptors: [{ key: mark, rate_limit: { unit: hour, requests_per_unit: 1, name: mark } }]\n',
};
const OF_MARK = ['-domain', 'mark', '-descriptors', 'mark=mark'];

/** The answer of the API to a command, as JSON. */
async function answerTo(...command: readonly string[]): Promise<string> {
  await using api = await ServedApi.start({ ruleset: rulesetOf(MARKED) });
  return (await admin({ address: `127.0.0.1:${api.server.port}` }, ...command, '-json')).stdout;
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
    await using api = await ApiStub.answering(JSON.parse((await answerTo('rules')).replace(/"hits": *0/, '"hits":1')));
    expect((await admin(api, 'rules')).stdout).toContain(', 1 hit, 0 over, 0 near ');
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

const PARTS = ['store', 'rules', 'process', 'instances'].map((part) => `  ${part}: green, well`).join('\n');

it.each([
  [
    'explain',
    DESCRIPTOR,
    { answer: null, error: { message: 'no connection' }, descriptors: [] },
    1,
    'error: no connection',
  ],
  ['explain', DESCRIPTOR, { answer: { overallCode: 'OVER_LIMIT', reason: 'r' }, descriptors: [] }, 0, 'OVER_LIMIT: r'],
  ['health', [], { ...HEALTH, healthy: false, unhealthy: ['store'] }, 1, `unhealthy: store\n${PARTS}`],
  ['health', [], { ...HEALTH, degraded: ['store degraded (allow)'] }, 0, `healthy; store degraded (allow)\n${PARTS}`],
  [
    'health',
    [],
    { ...HEALTH, store: { state: 'red', text: 'away', todo: { text: 'restore it', link: 'docs/runbook.md#a' } } },
    0,
    `healthy\n${PARTS.replace('green, well', 'red, away (restore it: docs/runbook.md#a)')}`,
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

it('weir-admin shows which limits are leased, and what is held of their counters', async () => {
  const limits = [true, false].map((lease) => `{ unit: year, requests_per_unit: 9, lease: ${lease} }`);
  const rules = [`{ key: a, rate_limit: ${limits[0]} }`, `{ key: b, rate_limit: ${limits[1]} }`];
  const ruleset = rulesetOf({ 'd.yaml': `domain: d\ndescriptors: [${rules.join(', ')}]\n` });
  await using api = await ServedApi.start({ ruleset });
  const served = { address: `127.0.0.1:${api.server.port}` };
  const listed = await admin(served, 'rules');
  expect(listed.stdout).toMatch(/ a, 9 per year, leased, 0 hits.*\n.* b, 9 per year, not leased, 0 hits/);
  async function shown(...command: readonly string[]): Promise<string> {
    const answer = (await admin(served, ...command, ...DESCRIPTOR, '-json')).stdout;
    await using stub = await ApiStub.answering(JSON.parse(answer.replaceAll(/"leased": *null/g, '"leased":5')));
    return (await admin(stub, ...command, ...DESCRIPTOR)).stdout;
  }
  expect(await shown('counter', 'get')).toContain('\n  5 hits held for later calls\n');
  expect(await shown('explain')).toMatch(/, count 0, of which 5 are leased here\n/);
});

it.each([
  ['helth', 'unexpected argument "helth"; the commands are rules, explain, counter get, '],
  ['', 'a command is required; the commands are rules, '],
  ['explain', 'flag -domain is required\n'],
  ['explain -domain d', 'flag -descriptors is required\n'],
  ['counter set -domain d -descriptors a=b', 'flag -count requires a whole number\n'],
  ['counter get -domain d -descriptors a=b -descriptors a=b', 'a counter is that of one descriptor'],
  ['top -top 0', 'flag -top requires at least 1\n'],
  ['top -fleet -top 0', 'flag -top requires at least 1\n'],
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

it('weir-admin top says of each caller whether it passes, since when it is limited, and what helps', async () => {
  const times = { since: 1_000_000_000, until: 32_503_680_000 };
  const offenders = [
    { descriptor: 'user=ann', limited: 40, recent: 30, ...times },
    { descriptor: 'user=bob', recent: 1, isZero: true, ...times },
    { descriptor: 'user=joe' },
  ];
  await using api = await ServedApi.start({ offenders });
  const { stdout } = await admin({ address: `127.0.0.1:${api.server.port}` }, 'top');
  expect(stdout.split('\n').slice(2, -1)).toEqual([
    '        40  user=ann  shop.user',
    '            limited until 3000-01-01T00:00:00.000Z; since 2001-09-09T01:46:40.000Z, in the last ten minutes 30',
    '         1  user=bob  shop.user',
    expect.stringMatching(
      /^ {12}never passes; since .*; the limit is 0, .* clearing its counter unblocks nobody: .*: docs/,
    ),
    '         1  user=joe  shop.user',
    '            passes now',
  ]);
  await using stub = await ApiStub.answering({
    offenders: [{ ...listedOffender({ descriptor: 'a', recent: 1 }), state: 'passes', share: 0.0312, since: 'SINCE' }],
  });
  expect((await admin(stub, 'top')).stdout).toContain(
    'passes now; since SINCE, in the last ten minutes 1, 3.12 % of the calls of its rule\n',
  );
});

describe('weir-admin prints no control characters of a server', () => {
  const OPEN = { id: HOSTILE, hits: 2, expiresAt: '2026-01-01T00:00:00.000Z', onExpiry: 'cancel' };

  async function expectShown(answer: unknown, lines: number, ...command: readonly string[]): Promise<void> {
    await using api = await ApiStub.answering(answer);
    const { stdout } = await admin(api, ...command);
    expect(stdout).toContain(SHOWN);
    expect(stdout).not.toMatch(CONTROL);
    expect(stdout.split('\n')).toHaveLength(lines + 1);
  }

  it.each([
    ['top', { offenders: [{ domain: 'd', rule: 'r', descriptor: HOSTILE, limited: 3, isShadow: false }] }, 3],
    ['health', { ...HEALTH, healthy: false, unhealthy: [HOSTILE] }, 5],
  ])('with %s', (command, answer, lines) => expectShown(answer, lines, command));

  it.each([
    ['rules', 3, []],
    ['explain', 7, OF_MARK],
    ['counter get', 4, OF_MARK],
  ] as const)('with %s', async (command, lines, flags) => {
    const all = [...command.split(' '), ...flags];
    const text = (await answerTo(...all)).replaceAll('mark', JSON.stringify(HOSTILE).slice(1, -1));
    const answer = JSON.parse(text) as object;
    await expectShown(answer, lines, ...all);
    if (command !== 'counter get') return;
    await expectShown({ ...answer, openReservations: { count: 3, first: [OPEN] } }, lines + 2, ...all);
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

describe('weir-admin token', () => {
  const RUN = ['token', '-name', 'ann', '-role', 'view'];

  it('makes a token and its line, each time another one', async () => {
    const { exitCode, stdout } = await runOf(ADMIN, RUN, {});
    expect(exitCode).toBe(0);
    const [, token, name, digest] = /^token: (\S{43})\nline: (\w+ view) sha256:(\S{64})\n$/.exec(stdout)!;
    expect([name, digest]).toEqual(['ann view', createHash('sha256').update(token!).digest('hex')]);
    expect((await runOf(ADMIN, RUN, {})).stdout).not.toContain(token);
  });

  it('makes the line of a token that there is, and says what it needs', async () => {
    using mount = new SecretMount({ token: 'a-token-of-operators\n' });
    const { stdout } = await runOf(ADMIN, [...RUN, '-token_file', mount.path('token')], {});
    expect(stdout).toBe(`line: ann view sha256:${createHash('sha256').update('a-token-of-operators').digest('hex')}\n`);
    const wrong = await runOf(ADMIN, ['token', '-name', 'ann', '-role', 'admin'], {});
    expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining('-role view, operate or peer')]);
  });
});

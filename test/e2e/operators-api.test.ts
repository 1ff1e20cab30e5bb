import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { replaceFile } from '../support/data/replace-file';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 3, name: per-user }
  - key: user
    value: boss
    rate_limit: { unlimited: true, replaces: [{ name: per-user }] }
  - key: plan
    descriptors:
      - key: path
        rate_limit: { unit: day, requests_per_unit: 1 }
`;

const FIRST_TOKEN = 'first-token-of-tests';
const SECOND_TOKEN = 'second-token-of-tests';

let folder: RuleFolder;
let tokens: string;
let weir: WeirProcess;
beforeAll(async () => {
  folder = await RuleFolder.with({ 'shop.yaml': RULES });
  tokens = await mkdtemp(join(tmpdir(), 'weir-token-'));
  await writeFile(join(tokens, 'token'), `${FIRST_TOKEN}\n`);
  weir = await WeirProcess.start({
    env: {
      ...folder.env,
      OPERATOR_TOKEN_FILE: join(tokens, 'token'),
      LOCAL_CACHE_SIZE_IN_BYTES: '100000',
      KVSTORE_AUTH: 'not-to-be-shown',
      LOG_LEVEL: 'warn',
    },
  });
});
afterAll(async () => {
  await weir?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
  await rm(tokens, { recursive: true, force: true });
});

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Headers;
}

async function call(
  process: WeirProcess,
  request: string,
  { token, body, type = 'application/json' }: { token?: string; body?: unknown; type?: string } = {},
): Promise<Answer> {
  const [method, path] = request.split(' ') as [string, string];
  const response = await fetch(`http://127.0.0.1:${process.ports.debug}${path}`, {
    method,
    headers: {
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'Content-Type': type }),
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: Object(await response.json()) };
}

function send(request: string, options: Parameters<typeof call>[2] = {}): Promise<Answer> {
  return call(weir, request, { token: FIRST_TOKEN, ...options });
}

async function hit(user: string): Promise<number> {
  const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: user }] }] });
  return (await weir.http('/json', { method: 'POST', body })).status;
}

function counterOf(user: string): string {
  return `/api/counters?domain=shop&descriptor=user=${user}`;
}

describe('/api/explanations', () => {
  it('shows the look-up, the count and the answer, and counts nothing', async () => {
    expect([await hit('eve'), await hit('eve')]).toEqual([200, 200]);
    const request = {
      domain: 'shop',
      descriptors: [
        { entries: [{ key: 'user', value: 'eve' }], hitsAddend: 2 },
        { entries: [{ key: 'plan', value: 'x' }] },
        { entries: [{ key: 'User', value: 'x' }] },
      ],
    };
    for (let repeated = 0; repeated < 2; repeated += 1) {
      const { status, body } = await send('POST /api/explanations', { body: request });
      expect(status).toBe(200);
      expect(body).toMatchObject({
        domain: 'shop',
        error: null,
        answer: { overallCode: 'OVER_LIMIT', reason: 'descriptor 1 is over its limit' },
        descriptors: [
          {
            outcome: 'limit',
            rule: { statisticsKey: 'shop.user', place: { file: 'shop.yaml', line: 3, column: 10 } },
            steps: [{ key: 'user', value: 'eve', otherValues: 1, candidates: [{ outcome: 'chosen' }] }],
            counter: { requestsPerUnit: 3, unit: 'YEAR', name: 'per-user', hits: 2, count: 2, countAfter: 4 },
            status: { code: 'OVER_LIMIT', limitRemaining: 0 },
            reason: 'the count would be 4 after 2 hits, over the limit of 3',
          },
          {
            outcome: 'no limit',
            nearest: {
              rule: { statisticsKey: 'shop.plan.path' },
              difference:
                "the descriptor has 1 entry; this rule, nested in 'plan', needs another one with the key 'path'",
            },
            counter: null,
          },
          {
            outcome: 'no match',
            nearest: { rule: { key: 'user' }, difference: "entry 1 has the key 'User', but the rule 'user'" },
            reason: 'no limit applies, because no rule matches',
          },
        ],
      });
    }
    expect((await send(`GET ${counterOf('eve')}`)).body).toMatchObject({ count: 2 });
  });

  it('shows by which rule another one is replaced, and limits sent with the request', async () => {
    const { body } = await send('POST /api/explanations', {
      body: {
        domain: 'shop',
        descriptors: [
          { entries: [{ key: 'user', value: 'fay' }] },
          { entries: [{ key: 'user', value: 'boss' }] },
          { entries: [{ key: 'any', value: 'x' }], limit: { requestsPerUnit: 1, unit: 'DAY' }, isNegativeHits: true },
        ],
      },
    });
    expect(body).toMatchObject({
      answer: { overallCode: 'OK', reason: 'no descriptor is over its limit' },
      descriptors: [
        { outcome: 'replaced', replacedBy: { statisticsKey: 'shop.user_boss' }, counter: null },
        { outcome: 'unlimited', status: { limitRemaining: 4_294_967_295, secondsUntilReset: null } },
        {
          outcome: 'override',
          steps: [],
          rule: null,
          counter: { requestsPerUnit: 1, unit: 'DAY', isNegativeHits: true },
        },
      ],
    });
  });

  it.each([
    ['{"domain":"shop"', 400, 'invalid_request'],
    ['{"domain":"","descriptors":[]}', 400, 'invalid_request'],
    [`"${'x'.repeat(1024 * 1024)}"`, 413, 'body_too_large'],
  ])('answers an invalid body with a problem', async (text, status, code) => {
    const answer = await send('POST /api/explanations', { body: text });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([status, 'application/problem+json']);
    expect(answer.body).toMatchObject({ status, code });
  });
});

describe('/api/counters', () => {
  it('shows a counter, sets it and clears it, the local cache included, with one log line for each change', async () => {
    const statuses = [];
    for (let calls = 0; calls < 5; calls += 1) statuses.push(await hit('ann'));
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
    const year = Math.floor(Date.now() / 31_536_000_000) * 31_536_000;
    const state = {
      cacheKey: `shop_user_ann_${year}`,
      rule: { statisticsKey: 'shop.user' },
      requestsPerUnit: 3,
      unit: 'YEAR',
      name: 'per-user',
      count: 4,
      isInLocalCache: true,
      windowStart: new Date(year * 1000).toISOString(),
      windowEnd: new Date((year + 31_536_000) * 1000).toISOString(),
    };
    const shown = await send(`GET ${counterOf('ann')}`);
    expect(shown.body).toMatchObject(state);
    expect(shown.body.timeToLive).toBeGreaterThan(0);

    const cleared = await send(`DELETE ${counterOf('ann')}`);
    expect(cleared).toMatchObject({ status: 200, body: { countBefore: 4, count: 0, isInLocalCache: false } });
    expect(await hit('ann')).toBe(200);

    const body = { domain: 'shop', descriptor: { entries: [{ key: 'user', value: 'ann' }] }, count: 3 };
    const set = await send('PUT /api/counters', { body });
    expect(set).toMatchObject({ status: 200, body: { ...state, countBefore: 1, count: 3, isInLocalCache: false } });
    expect(await hit('ann')).toBe(429);

    const fields = 'domain=shop descriptor="user=ann"';
    const peer = 'peer=127.0.0.1';
    expect(await weir.line(/counter cleared/)).toContain(`${fields} before=4 after=0 ${peer}`);
    expect(await weir.line(/counter set/)).toContain(`${fields} before=1 after=3 ${peer}`);
    expect(weir.output.match(/counter (?:set|cleared) by an operator/g)).toHaveLength(2);
  });

  it('has no counter for a descriptor without a limit, and says why', async () => {
    const { status, body } = await send('GET /api/counters?domain=shop&descriptor=plan=x');
    expect([status, body.code]).toEqual([404, 'no_counter']);
    expect(body.detail).toBe('the descriptor has no counter: no limit applies, because the rule has no rate_limit');
    expect(body.nearest).toMatchObject({ rule: { statisticsKey: 'shop.plan.path' } });
    const change = await send('DELETE /api/counters?domain=shop&descriptor=user=boss');
    expect([change.status, change.body.code]).toEqual([404, 'no_counter']);
  });

  it.each([
    ['GET /api/counters?descriptor=a=b', undefined, 'the parameter domain is missing'],
    ['GET /api/counters?domain=shop', undefined, 'the parameter descriptor is missing'],
    ['GET /api/counters?domain=shop&domain=x&descriptor=a=b', undefined, 'the parameter domain is repeated'],
    ['GET /api/counters?domain=shop&descriptor=a', undefined, /^the descriptor must be key=value/],
    ['GET /api/counters?domain=shop&key=a', undefined, /^there is no parameter "key"/],
    ['PUT /api/counters', { domain: 'shop', descriptor: 'user=x', count: -1 }, /^count must be a whole number/],
    ['PUT /api/counters', { domain: 'shop', descriptor: 'user=x', count: 2 ** 53 }, /^count must be a whole number/],
    [
      'PUT /api/counters',
      { domain: 'shop', descriptor: 'user=x', count: 1, more: 1 },
      /^the body has the member "more"/,
    ],
    ['PUT /api/counters', [], 'the body must be a JSON object'],
  ])('rejects %s %j', async (request, body, detail) => {
    const answer = await send(request, body === undefined ? {} : { body });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({
      code: 'invalid_request',
      detail: typeof detail === 'string' ? detail : expect.stringMatching(detail),
    });
  });

  it('changes nothing for a body that a form of a browser could send', async () => {
    const body = { domain: 'shop', descriptor: 'user=gil', count: 9 };
    const { status, body: problem } = await send('PUT /api/counters', { body, type: 'text/plain' });
    expect([status, problem.code]).toEqual([415, 'unsupported_media_type']);
    expect((await send(`GET ${counterOf('gil')}`)).body.count).toBe(0);
  });
});

describe('the operator token', () => {
  it('is needed for changes and for what callers have sent, and for nothing else', async () => {
    for (const path of ['/api/rules', '/api/health', '/api/statistics', '/api/settings']) {
      expect([path, (await call(weir, `GET ${path}`)).status]).toEqual([path, 200]);
    }
    const privateRequests = [`GET ${counterOf('x')}`, 'GET /api/offenders', 'POST /api/explanations'];
    for (const request of [
      ...privateRequests,
      `DELETE ${counterOf('x')}`,
      'PUT /api/counters',
      'PATCH /api/counters',
    ]) {
      const missing = await call(weir, request);
      expect([request, missing.status, missing.headers.get('www-authenticate')]).toEqual([
        request,
        401,
        'Bearer realm="weir"',
      ]);
      const wrong = await call(weir, request, { token: `${FIRST_TOKEN}x` });
      expect([request, wrong.status, wrong.headers.get('www-authenticate')]).toEqual([
        request,
        401,
        'Bearer realm="weir", error="invalid_token"',
      ]);
    }
    await weir.line(/requests with a wrong operator token rejected/);
    expect(weir.output.match(/wrong operator token/g)).toHaveLength(1);
  });

  it('is read from its file again when it has changed, and never shown', async () => {
    await replaceFile(join(tokens, 'token'), SECOND_TOKEN);
    expect((await send('GET /api/offenders')).status).toBe(401);
    expect((await send('GET /api/offenders', { token: SECOND_TOKEN })).status).toBe(200);
    await replaceFile(join(tokens, 'token'), '');
    expect((await send('GET /api/offenders', { token: SECOND_TOKEN })).status).toBe(200);
    await weir.line(/cannot use the file of a secret; keeping its last value.*OPERATOR_TOKEN_FILE=.*it is empty/);
    await replaceFile(join(tokens, 'token'), FIRST_TOKEN);
    expect((await send('GET /api/offenders')).status).toBe(200);
    const settings = JSON.stringify((await send('GET /api/settings')).body);
    expect(settings).toContain('{"name":"KVSTORE_AUTH","source":"environment","value":"***"}');
    expect(weir.output + settings).not.toMatch(/first-token|second-token|not-to-be-shown/);
  });

  it('is what switches changes on', async () => {
    await using open = await WeirProcess.start({ env: folder.env });
    const off = await call(open, 'DELETE /api/counters?domain=shop&descriptor=user=x', { token: FIRST_TOKEN });
    expect([off.status, off.body.code]).toEqual([403, 'changes_off']);
    expect(off.body.detail).toContain('set OPERATOR_TOKEN or OPERATOR_TOKEN_FILE');
    expect((await call(open, 'GET /api/counters?domain=shop&descriptor=user=x')).status).toBe(200);
  });

  it.each([
    [{ OPERATOR_TOKEN: FIRST_TOKEN, OPERATOR_TOKEN_FILE: '/x' }, /OPERATOR_TOKEN and OPERATOR_TOKEN_FILE are both set/],
    [{ OPERATOR_TOKEN: 'short' }, /OPERATOR_TOKEN \(secret value\) is invalid; allowed: 16 to 1024 visible/],
    [
      { OPERATOR_TOKEN_FILE: '/does/not/exist' },
      /cannot use OPERATOR_TOKEN_FILE=\/does\/not\/exist: it cannot be read \(ENOENT\)/,
    ],
  ])('that cannot be used keeps the service from starting', async (env, message) => {
    await using failed = await WeirProcess.start({ env, awaitServing: false });
    expect(await failed.exited).toBe(1);
    expect(failed.output).toMatch(message);
  });
});

it('/api/offenders shows the callers that are limited most', async () => {
  await send('PUT /api/counters', { body: { domain: 'shop', descriptor: 'user=joe', count: 100 } });
  for (let calls = 0; calls < 3; calls += 1) await hit('joe');
  const { body } = await send('GET /api/offenders?domain=shop&top=1000');
  expect(body.offenders).toContainEqual(
    expect.objectContaining({ domain: 'shop', rule: 'shop.user', descriptor: 'user=joe', limited: 3 }),
  );
  expect((await send('GET /api/offenders?top=0')).status).toBe(400);
  expect((await send('GET /api/offenders?domain=none')).body).toEqual({ offenders: [] });
});

it('the statistics, the health and the settings are those of the other outputs', async () => {
  const statistics = Object(Object((await send('GET /api/statistics')).body).statistics);
  const stats = await weir.statistics();
  expect(Object.keys(statistics).sort()).toEqual([...stats.keys()].sort());
  const name = 'ratelimit.service.rate_limit.shop.user.total_hits';
  expect(statistics[name]).toBe(stats.get(name));
  expect((await send('GET /api/health')).body).toEqual({ healthy: true, unhealthy: [] });
  expect((await send('GET /api/settings')).body).toMatchObject({
    settings: expect.arrayContaining([
      { name: 'LOG_LEVEL', source: 'environment', value: 'warning' },
      { name: 'NEAR_LIMIT_RATIO', source: 'default', value: '0.8' },
    ]),
  });
});

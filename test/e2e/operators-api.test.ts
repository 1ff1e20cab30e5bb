import { createHash } from 'node:crypto';
import type { RulesAnswer } from '../../src/operators/answers';
import type { Fleet, LiveEvent } from '../../src/operators/live-answers';
import { eventsOf } from '../support/clients/read-events';
import { until } from '../support/waiting/until';
import { SecretMount } from '../support/data/secret-mount';
import { freePorts } from '../support/processes/free-ports';
import type { WeirProcess } from '../support/processes/weir-process';
import { Shop } from './shop';

const RULES = `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 3, name: per-user }
  - key: user
    value: boss
    rate_limit: { unlimited: true, replaces: [{ name: per-user }] }
  - key: tenant
    rate_limits:
      - { unit: second, requests_per_unit: 1000 }
      - { unit: day, requests_per_unit: 45 }
  - key: plan
    descriptors:
      - key: path
        rate_limit: { unit: day, requests_per_unit: 1 }
`;

const FIRST_TOKEN = 'first-token-of-tests';
const SECOND_TOKEN = 'second-token-of-tests';

/** Further tokens, by their names. */
const VIEWER = 'token-of-ann-who-views';
const OPERATOR = 'token-of-bob-who-operates';
const PEER = 'token-of-another-instance';
function lineOf(name: string, role: string, token: string): string {
  return `${name} ${role} sha256:${createHash('sha256').update(token).digest('hex')}\n`;
}
const LINES = [lineOf('ann', 'view', VIEWER), lineOf('bob', 'operate', OPERATOR), lineOf('peers', 'peer', PEER)];
const TOKENS = `# operators\n${LINES.join('')}`;

const secrets = new SecretMount({ token: `${FIRST_TOKEN}\n`, tokens: TOKENS });
let shop: Shop;
let weir: WeirProcess;
beforeAll(async () => {
  const env = {
    OPERATOR_TOKEN_FILE: secrets.path('token'),
    OPERATOR_TOKENS_FILE: secrets.path('tokens'),
    INSTANCE_NAME: 'shop-1',
    LOCAL_CACHE_SIZE_IN_BYTES: '100000',
    KVSTORE_AUTH: 'not-to-be-shown',
    LOG_LEVEL: 'warn',
  };
  shop = await Shop.start({ env }, RULES);
  weir = shop.weir;
});
afterAll(async () => {
  await shop[Symbol.asyncDispose]();
  secrets[Symbol.dispose]();
});

async function call(
  process: WeirProcess,
  request: string,
  { token, body, origin }: { token?: string; body?: unknown; origin?: string } = {},
) {
  const [method, path] = request.split(' ') as [string, string];
  const response = await fetch(`http://127.0.0.1:${process.ports.debug}${path}`, {
    method,
    headers: {
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(origin !== undefined && { Origin: origin }),
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const { status, headers } = response;
  return { status, headers, body: (await response.json()) as Readonly<Record<string, unknown>> };
}

function send(request: string, options: Parameters<typeof call>[2] = {}) {
  return call(weir, request, { token: FIRST_TOKEN, ...options });
}

async function hit(user: string): Promise<number> {
  return (await shop.json(user)).status;
}

function counterOf(user: string): string {
  return `/api/counters?domain=shop&descriptor=user=${user}`;
}

it('/api/explanations shows the look-up, the count and the answer, and counts nothing', async () => {
  expect([await hit('eve'), await hit('eve')]).toEqual([200, 200]);
  const request = {
    domain: 'shop',
    descriptors: [
      { entries: [{ key: 'user', value: 'eve' }], hitsAddend: 2 },
      { entries: [{ key: 'plan', value: 'x' }] },
      { entries: [{ key: 'User', value: 'x' }] },
      { entries: [{ key: 'any', value: 'x' }], limit: { requestsPerUnit: 1, unit: 'DAY' }, isNegativeHits: true },
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
        { outcome: 'no limit', nearest: { rule: { statisticsKey: 'shop.plan.path' } }, counter: null },
        {
          outcome: 'no match',
          nearest: { rule: { key: 'user' }, difference: "entry 1 has the key 'User', but the rule 'user'" },
          reason: 'no limit applies, because no rule matches',
        },
        { outcome: 'override', rule: null, counter: { requestsPerUnit: 1, unit: 'DAY', isNegativeHits: true } },
      ],
    });
  }
  expect((await send(`GET ${counterOf('eve')}`)).body).toMatchObject({ count: 2 });
});

it('/api/explanations answers an invalid body with a problem', async () => {
  for (const [text, status, code] of [
    ['{"domain":"","descriptors":[]}', 400, 'invalid_request'],
    [`"${'x'.repeat(1024 * 1024)}"`, 413, 'body_too_large'],
  ]) {
    const { body, headers } = await send('POST /api/explanations', { body: text });
    expect([body.status, body.code, headers.get('content-type')]).toEqual([status, code, 'application/problem+json']);
  }
});

it('/api/rules, /api/fleet and /api/events count a call of a rule with two limits once', async () => {
  const stream = eventsOf(await fetch(`http://127.0.0.1:${weir.ports.debug}/api/events`), 4);
  for (let calls = 0; calls < 50; calls += 1) await shop.client.shouldRateLimit('shop', ['tenant=a'], 3);
  const { domains } = (await send('GET /api/rules/shop')).body as unknown as RulesAnswer;
  const { totals } = domains[0]!.descriptors.find(({ key }) => key === 'tenant')!;
  expect(totals).toMatchObject({ calls: 50, hits: 300 });
  const events = (await stream) as unknown as readonly LiveEvent[];
  for (const window of ['second', 'day']) {
    const rates = events.flatMap(({ rules }) =>
      rules.hits.filter(({ statisticsKey }) => statisticsKey.endsWith(window)),
    );
    expect(rates.length).toBeGreaterThan(0);
    for (const { calls, hits } of rates) expect(hits).toBeCloseTo(3 * calls);
  }
  const busy = await until('a sample', async () => {
    const { rules } = (await send('GET /api/fleet')).body as unknown as Fleet;
    return rules.hits.find(({ statisticsKey }) => statisticsKey === 'shop.tenant.day');
  });
  // A sample has three digits.
  expect(busy.hits / busy.calls).toBeCloseTo(3, 1);
});

describe('/api/counters', () => {
  it('shows a counter, sets it and clears it, the local cache included, with one log line for each change', async () => {
    const statuses = [];
    for (let calls = 0; calls < 5; calls += 1) statuses.push(await hit('ann'));
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
    const year = Math.floor(Date.now() / 31_536_000_000) * 31_536_000;
    const [windowStart, windowEnd] = [year, year + 31_536_000].map((time) => new Date(time * 1000).toISOString());
    const limit = { requestsPerUnit: 3, unit: 'YEAR', name: 'per-user', windowStart, windowEnd };
    const state = { cacheKey: `shop_user_ann_${year}`, rule: { statisticsKey: 'shop.user' }, ...limit };
    const shown = await send(`GET ${counterOf('ann')}`);
    expect(shown.body).toMatchObject({ ...state, count: 4, isInLocalCache: true });
    expect(shown.body.timeToLive).toBeGreaterThan(0);

    const cleared = await send(`DELETE ${counterOf('ann')}`);
    expect(cleared).toMatchObject({ status: 200, body: { countBefore: 4, count: 0, isInLocalCache: false } });
    expect(await hit('ann')).toBe(200);

    const body = { domain: 'shop', descriptor: { entries: [{ key: 'user', value: 'ann' }] }, count: 3 };
    const set = await send('PUT /api/counters', { body });
    expect(set).toMatchObject({ status: 200, body: { ...state, countBefore: 1, count: 3, isInLocalCache: false } });
    expect(await hit('ann')).toBe(429);

    const fields = 'domain=shop descriptor="user=ann"';
    expect(await weir.line(/counter cleared/)).toContain(
      `${fields} before=4 after=0 peer=127.0.0.1 operator=OPERATOR_TOKEN`,
    );
    expect(await weir.line(/counter set/)).toContain(
      `${fields} before=1 after=3 peer=127.0.0.1 operator=OPERATOR_TOKEN`,
    );
    expect(weir.output.match(/counter (?:set|cleared) by an operator/g)).toHaveLength(2);
  });

  it('has no counter for a descriptor without a limit, and says why', async () => {
    const nearest = { rule: { statisticsKey: 'shop.plan.path' } };
    const detail = 'the descriptor has no counter: no limit applies, because the rule has no rate_limit';
    const { body } = await send('GET /api/counters?domain=shop&descriptor=plan=x');
    expect(body).toMatchObject({ status: 404, code: 'no_counter', detail, nearest });
    const change = await send('DELETE /api/counters?domain=shop&descriptor=user=boss');
    expect(change.body).toMatchObject({ status: 404, code: 'no_counter' });
  });

  const USER = { domain: 'shop', descriptor: 'user=gil' };
  it.each<[request: string, body: unknown, detail: RegExp]>([
    ['GET /api/counters?descriptor=a=b', undefined, /^the parameter domain is missing$/],
    ['GET /api/counters?domain=shop&domain=x&descriptor=a=b', undefined, /^the parameter domain is repeated$/],
    ['GET /api/counters?domain=shop&descriptor=a', undefined, /^the descriptor must be key=value/],
    ['GET /api/counters?domain=shop&key=a', undefined, /^there is no parameter "key"/],
    ['PUT /api/counters', { ...USER, count: 2 ** 53 }, /^\$\.count: expected a whole number/],
    [
      'PUT /api/counters',
      { ...USER, count: 1, more: 1 },
      /^\$\.more: unknown field; allowed fields: domain, descriptor, count, window, reason$/,
    ],
    ['PUT /api/counters', { ...USER, count: null }, /^the parameter count is missing$/],
    ['PUT /api/counters', [], /^\$: expected a counter \(an object\), got an array/],
  ])('rejects %s %j', async (request, body, detail) => {
    const answer = await send(request, body === undefined ? {} : { body });
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_request']);
    expect(answer.body.detail).toMatch(detail);
  });

  it('changes nothing for a page of another site, whatever it sends', async () => {
    const answer = await send('PUT /api/counters', { body: { ...USER, count: 9 }, origin: 'http://evil.example' });
    expect([answer.status, answer.body]).toMatchObject([403, { error: { code: 'cross_site' } }]);
    expect((await send(`GET ${counterOf('gil')}`)).body.count).toBe(0);
  });
});

describe('the operator token', () => {
  it('is needed for changes, for what callers have sent and for the settings, and for nothing else', async () => {
    for (const path of ['/api/rules', '/api/health', '/api/statistics']) {
      expect([path, (await call(weir, `GET ${path}`)).status]).toEqual([path, 200]);
    }
    const reads = [`GET ${counterOf('x')}`, 'GET /api/offenders', 'POST /api/explanations', 'GET /api/settings'];
    for (const request of [...reads, `DELETE ${counterOf('x')}`, 'PUT /api/counters', 'PATCH /api/counters']) {
      for (const [token, challenge] of [
        [undefined, 'Bearer realm="weir"'],
        [`${FIRST_TOKEN}x`, 'Bearer realm="weir", error="invalid_token"'],
      ]) {
        const { status, headers } = await call(weir, request, token === undefined ? {} : { token });
        expect([request, status, headers.get('www-authenticate')]).toEqual([request, 401, challenge]);
      }
    }
    await weir.line(/requests with a wrong operator token rejected/);
    expect(weir.output.match(/wrong operator token/g)).toHaveLength(1);
  });

  it('is read from its file again when it has changed, and never shown', async () => {
    secrets.replace({ token: SECOND_TOKEN, tokens: TOKENS });
    expect((await send('GET /api/offenders')).status).toBe(401);
    expect((await send('GET /api/offenders', { token: SECOND_TOKEN })).status).toBe(200);
    secrets.replace({ token: '', tokens: TOKENS });
    expect((await send('GET /api/offenders', { token: SECOND_TOKEN })).status).toBe(200);
    await weir.line(/cannot use the file of a secret; keeping its last value.*OPERATOR_TOKEN_FILE=.*it is empty/);
    secrets.replace({ token: FIRST_TOKEN, tokens: TOKENS });
    expect((await send('GET /api/offenders')).status).toBe(200);
    const settings = JSON.stringify((await send('GET /api/settings')).body);
    expect(settings).toContain('{"name":"KVSTORE_AUTH","source":"environment","value":"***",');
    expect(weir.output + settings).not.toMatch(/first-token|second-token|not-to-be-shown/);
  });
});

it('the first load of rules is in /api/loads', async () => {
  const { loads } = (await send('GET /api/loads')).body as { loads: readonly unknown[] };
  expect(loads[0]).toMatchObject({ at: expect.any(String), rules: expect.any(Number), changes: null });
});

describe('the callers that are limited most', () => {
  it('are in /api/offenders', async () => {
    await send('PUT /api/counters', { body: { domain: 'shop', descriptor: 'user=joe', count: 100 } });
    for (let calls = 0; calls < 3; calls += 1) await hit('joe');
    const { body } = await send('GET /api/offenders?domain=shop&top=1000');
    expect(body.offenders).toContainEqual(
      expect.objectContaining({
        ...{ domain: 'shop', rule: 'shop.user', descriptor: 'user=joe', limited: 3, recent: 3, todo: null },
        since: expect.any(String),
        state: expect.stringMatching(/^(limited|passes)$/),
      }),
    );
    expect((await send('GET /api/offenders?top=0')).status).toBe(400);
    expect((await send('GET /api/offenders?domain=none')).body).toEqual({ offenders: [] });
  });

  it('are on the page of metrics for two periods of OFFENDERS_WINDOW, and no change is accepted without a token', async () => {
    const [port] = await freePorts(1);
    const pull = { USE_PULLMETRICS: 'true', PULLMETRICS_ADDR: `127.0.0.1:${port}` };
    await using open = await Shop.start({ env: { ...pull, OFFENDERS_METRICS: '1', OFFENDERS_WINDOW: '3s' } }, RULES);
    async function samples() {
      const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      return page.split('\n').filter((line) => line.startsWith('ratelimit_offender_limited{'));
    }
    await open.hit('ben', 4);
    const top = 'descriptor="user=anna",domain="shop",rule="shop.user",shadow_mode="false"';
    await open.weir.until('the caller that is limited more often', async () => {
      await open.hit('anna', 4);
      const [first = '', ...others] = await samples();
      return first.includes(`{${top}} `) && others.length === 0;
    });
    await open.weir.until('no offender', async () => (await samples()).length === 0);

    const detail = expect.stringContaining('set OPERATOR_TOKENS_FILE or OPERATOR_TOKEN,');
    const { body } = await call(open.weir, `DELETE ${counterOf('x')}`, { token: FIRST_TOKEN });
    expect(body).toMatchObject({ status: 403, code: 'changes_off', detail });
    expect((await call(open.weir, `GET ${counterOf('x')}`)).status).toBe(200);
  });
});

describe('the tokens of operators', () => {
  async function statusesOf(token: string): Promise<readonly number[]> {
    const reports = ['GET /api/changes', 'GET /api/instance', 'GET /api/watches?domain=shop&descriptor=user=ida'];
    const requests = [...reports, 'GET /api/offenders', `DELETE ${counterOf('ida')}`];
    const statuses: number[] = [];
    for (const request of requests) statuses.push((await send(request, { token })).status);
    const profile = await fetch(`http://127.0.0.1:${weir.ports.debug}/debug/pprof/heap`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    await profile.arrayBuffer();
    return [...statuses, profile.status];
  }

  it('permit what their roles do', async () => {
    expect(await statusesOf(VIEWER)).toEqual([200, 200, 200, 200, 403, 403]);
    expect(await statusesOf(PEER)).toEqual([200, 200, 200, 403, 403, 403]);
    expect(await statusesOf(OPERATOR)).toEqual([200, 200, 200, 200, 200, 200]);
    const { body } = await send(`DELETE ${counterOf('ida')}`, { token: VIEWER });
    const detail = 'the token has the role view, but this request needs one with the role operate';
    expect(body).toMatchObject({ status: 403, code: 'forbidden', detail });
  });

  it('have a role, which the answer to a request for events has in a header', async () => {
    async function roleOf(token: string | undefined): Promise<string | null> {
      const headers: Readonly<Record<string, string>> = token === undefined ? {} : { 'Weir-Operator-Token': token };
      const response = await fetch(`http://127.0.0.1:${weir.ports.debug}/api/events`, { method: 'HEAD', headers });
      return response.headers.get('Weir-Operator-Role');
    }
    expect([await roleOf(VIEWER), await roleOf(OPERATOR), await roleOf(FIRST_TOKEN), await roleOf(undefined)]).toEqual([
      ...['view', 'operate', 'operate', null],
    ]);
  });

  it('have names, which stand with address and reason at each change in the list and in the log', async () => {
    await hit('ida');
    await send(`DELETE ${counterOf('ida')}&reason=she%20asked`, { token: OPERATOR });
    await send('PUT /api/counters', { body: { domain: 'shop', descriptor: 'user=ida', count: 2, reason: 'tried' } });
    const change = { from: '127.0.0.1', domain: 'shop', descriptor: 'user=ida', window: null, instance: 'shop-1' };
    const { changes } = (await send('GET /api/changes', { token: VIEWER })).body as { changes: readonly unknown[] };
    expect(changes.slice(-2)).toMatchObject([
      { ...change, name: 'bob', what: 'counter cleared', before: 1, after: 0, reason: 'she asked' },
      { ...change, name: 'OPERATOR_TOKEN', what: 'counter set', before: 0, after: 2, reason: 'tried' },
    ]);
    expect(await weir.line(/reason="she asked"/)).toContain('before=1 after=0 peer=127.0.0.1 operator=bob');
    const long = await send(`DELETE ${counterOf('ida')}&reason=${'x'.repeat(257)}`, { token: OPERATOR });
    expect([long.status, long.body.detail]).toEqual([400, 'the reason has more than 256 characters']);
  });

  it('are read again when their file changes; a broken one keeps the last', async () => {
    secrets.replace({ token: FIRST_TOKEN, tokens: lineOf('eve', 'view', VIEWER) });
    expect((await send('GET /api/offenders', { token: VIEWER })).status).toBe(200);
    expect((await send('GET /api/changes', { token: PEER })).status).toBe(401);
    secrets.replace({ token: FIRST_TOKEN, tokens: `${TOKENS}zoe admin sha256:0` });
    expect((await send('GET /api/offenders', { token: VIEWER })).status).toBe(200);
    expect((await send('GET /api/changes', { token: PEER })).status).toBe(401);
    const line = await weir.line(/keeping its last value.*OPERATOR_TOKENS_FILE=/);
    expect(line).toContain('(line 5 is invalid; weir-admin token makes one)');
    secrets.replace({ token: FIRST_TOKEN, tokens: TOKENS });
    expect((await send('GET /api/changes', { token: PEER })).status).toBe(200);
    const settings = (await send('GET /api/settings')).body.settings as readonly { name: string; value: string }[];
    expect(settings.find(({ name }) => name === 'OPERATOR_TOKENS_FILE')!.value).toBe(secrets.path('tokens'));
  });
});

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { fileOptions } from '../../sources/rule-files/watched-rules';
import { PendingChange, RuleReader } from '../../../src/sources/rule-files/rule-reader';
import { RecentConfigurations } from '../../../src/operators/configurations';
import { LiveView } from '../../../src/operators/history/live';
import { Operator } from '../../../src/operators/operator';
import { Statistics } from '../../../src/statistics/statistics';
import { RuleFolder } from '../../support/data/rule-folder';
import { until } from '../../support/waiting/until';
import { eventsOf, readEvents } from '../../support/clients/read-events';
import { ServedApi, rulesetOf } from './served-api';

const OFFENDER = { domain: 'shop', rule: 'shop.user', descriptor: 'user=ann', isShadow: false, limited: 2, error: 0 };
const TOKEN = 'token-of-these-tests';

afterEach(() => jest.restoreAllMocks());

it('an event has hits per second, the rules with the most, and the latency', () => {
  const statistics = new Statistics(1_000);
  const [user, plan] = [statistics.rule('shop.user'), statistics.rule('shop.plan')];
  user.totalHits = 1e9;
  user.calls = 2 ** 32 - 1;
  plan.totalHits = plan.shadowMode = 2 ** 32 - 1;
  const view = new LiveView(statistics);
  const now = jest.spyOn(performance, 'now').mockReturnValue(10_000);
  expect(view.measure()).toMatchObject({ rates: null, latency: null, rules: { hits: [], denials: [] } });
  user.totalHits += 10;
  user.calls += 4;
  user.withinLimit += 10;
  user.nearLimit += 2;
  // Of calls that are partly over.
  plan.nearLimit += 676;
  plan.nearLimitPartial += 676;
  plan.totalHits += 30;
  plan.overLimit += 30;
  plan.shadowMode += 6;
  statistics.runtimeRule('shop.plan_free', 'shop.plan').totalHits += 10;
  statistics.counter('ratelimit_server.ShouldRateLimit.total_requests').add(50);
  statistics.timer('ratelimit_server.ShouldRateLimit.response_time').record(3);
  now.mockReturnValue(12_000);
  const [ofPlan, ofUser] = [
    { statisticsKey: 'shop.plan', hits: 20, over: 15, shadow: 3, calls: 0 },
    { statisticsKey: 'shop.user', hits: 5, over: 0, shadow: 0, calls: 2 },
  ];
  expect(view.measure()).toMatchObject({
    rates: { within: 5, near: 1, over: 15, shadow: 3, calls: 25, invalid: 0, storeErrors: 0, noMatch: 0 },
    rules: { hits: [ofPlan, ofUser], denials: [ofPlan] },
    latency: { p50: expect.closeTo(3, 1), p999: expect.closeTo(3, 1) },
  });
  for (let rule = 0; rule < 20; rule += 1) statistics.rule(`shop.${rule}`).totalHits += rule;
  statistics.rule('shop.new').totalHits = 38;
  now.mockReturnValue(13_000);
  const { rules, latency } = view.measure();
  expect(rules.hits.map(({ hits }) => hits)).toEqual([38, 0, 19, 18, 17, 16, 15, 14, 13, 12]);
  expect([latency, rules.denials]).toEqual([null, [{ ...ofPlan, hits: 0, over: 0, shadow: 0 }]]);
  now.mockReturnValue(60_000);
  expect(view.measure()).toMatchObject({ rates: null, rules: { hits: [] } });
});

describe('/api/events', () => {
  it('shows callers with the token alone, also as Weir-Operator-Token, and is answered with 401 for a wrong one', async () => {
    let token = TOKEN;
    await using api = await ServedApi.start({ offenders: [OFFENDER] }, () => token);
    function send(headers: Readonly<Record<string, string>>): Promise<Response> {
      return api.send('/api/events', { headers });
    }
    expect(await eventsOf(await send({}), 1)).toMatchObject([{ offenders: null }]);
    expect(await eventsOf(await send({ Authorization: `Bearer ${TOKEN}` }), 1)).toMatchObject([
      { offenders: [OFFENDER] },
    ]);
    const forProxies = { Authorization: 'Basic eDp5', 'Weir-Operator-Token': TOKEN };
    const events = readEvents(await send(forProxies));
    expect(JSON.parse((await events.next()).value!['data']!)).toMatchObject({ offenders: [OFFENDER] });
    expect((await send({ 'Weir-Operator-Token': 'x' })).status).toBe(401);
    token = 'another-token-of-these-tests';
    // The stream ends, at the latest after the event that is made already.
    for (let event = await events.next(); event.done !== true; event = await events.next());
  });

  it('is made once for all of 64 streams, next to which others are answered; one more is answered with 503', async () => {
    await using api = await ServedApi.start();
    const made = jest.spyOn(Operator.prototype, 'live');
    const streams: IncomingMessage[] = [];
    for (let stream = 0; stream < 64; stream += 1) {
      const sent = request(`${api.server.url}/api/events`, { agent: false }).end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      streams.push(response.on('error', () => undefined).resume());
    }
    const refused = await api.send('/api/events');
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'too_many_streams' }]);
    made.mockClear();
    const received = streams.map(() => 0);
    streams.forEach((stream, index) => stream.on('data', () => (received[index]! += 1)));
    await until('two more events', () => received.every((count) => count >= 2));
    expect(made.mock.calls.length).toBeLessThanOrEqual(4);
    const idle = Array.from({ length: 70 }, () => api.send('/api/health', { headers: { Connection: 'close' } }));
    expect(new Set((await Promise.all(idle)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(streams.every(({ complete, destroyed }) => !complete && !destroyed)).toBe(true);
    const ended = Promise.all(streams.map((stream) => once(stream, 'close')));
    for (const stream of streams) stream.destroy();
    await ended;
    await until('room', async () => (await eventsOf(await api.send('/api/events'), 1)).length === 1);
  });

  it('ends when its caller ends its half of the connection', async () => {
    await using api = await ServedApi.start();
    const viewer = request(`${api.server.url}/api/events`, { agent: false }).end();
    const [stream] = (await once(viewer, 'response')) as [IncomingMessage];
    stream.on('error', () => undefined).resume();
    viewer.socket!.end();
    expect(stream.complete).toBe(false);
    await until('the connection to be closed', () => api.server.connectionCount === 0);
  });

  it('is skipped for a reader that does not read, and ends with `bye` when the service stops', async () => {
    const checks = [{ name: 'store', failure: 'x'.repeat(6_000_000) }] as const;
    await using api = await ServedApi.start({ readiness: { health: { healthy: true, unhealthy: [] }, checks } });
    const sent = request(`${api.server.url}/api/events`, { agent: false }).end();
    const [slow] = (await once(sent, 'response')) as [IncomingMessage];
    slow.pause();
    const events = readEvents(await api.send('/api/events'));
    for (let event = 0; event < 3; event += 1) await events.next();
    const ids: string[] = [];
    api.api.close();
    for await (const fields of events) ids.push(fields['event'] ?? '');
    expect(ids.at(-1)).toBe('bye');
    let text = '';
    for await (const chunk of slow.setEncoding('utf8')) text += chunk;
    // The system takes some megabytes of what is not read.
    const read = text.match(/^id: \d+$/gm)!.length;
    expect(read).toBeLessThan(3);
    expect(text.endsWith('event: bye\ndata: the service stops\n\n')).toBe(true);
  });
});

it('/api/configurations has the files of the active rules and of those before, and the rejected ones with carets', async () => {
  await using rules = await RuleFolder.with({ 'shop.yaml': 'domain: shop\n' });
  const options = fileOptions({ root: rules.root, smallSet: Infinity });
  const folder = join(rules.root, 'config');
  const reader = new RuleReader(folder, options, new PendingChange({ hold: 0, forced: 0 }));
  const configurations = new RecentConfigurations();
  await using api = await ServedApi.start({ configurations });
  expect(await api.json('/api/configurations')).toEqual({ active: null, previous: null, rejected: null });
  async function look(text?: string): Promise<unknown> {
    if (text !== undefined) await rules.write('shop.yaml', text);
    await new Promise<void>((resolve) => {
      reader.look(() => undefined).subscribe({ next: (event) => configurations.record(event), complete: resolve });
    });
    return api.json('/api/configurations');
  }
  const files = [{ path: 'shop.yaml', text: 'domain: shop\n' }];
  const source = `files in ${folder}`;
  const first = { source, version: expect.any(String), at: expect.any(String), rules: 0, files };
  expect(await look()).toEqual({ active: first, previous: null, rejected: null });
  const wrong = 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: minut, requests_per_unit: 1 } }]\n';
  const rejected = {
    at: expect.any(String),
    isNewest: true,
    reason: expect.stringContaining("invalid rate limit unit 'minut'"),
    errors: [expect.stringMatching(/^shop.yaml:2:48: error: .*\n.*unit: minut.*\n *\| +\^{5}\n/)],
    files: [{ path: 'shop.yaml', text: wrong }],
  };
  expect(await look(wrong)).toEqual({ active: first, previous: null, rejected });
  const right = wrong.replace('minut', 'minute');
  expect(await look(right)).toEqual({
    active: { ...first, rules: 1, files: [{ path: 'shop.yaml', text: right }] },
    previous: first,
    rejected: { ...rejected, isNewest: false },
  });
  expect(await look(`${right}${'#'.repeat(4 * 1024 * 1024)}`)).toMatchObject({ active: { files: null } });
});

it('a limit that is tried is explained instead of those of the rules, and may be more than they have', async () => {
  const rules = {
    'shop.yaml': 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 0 } }]\n',
  };
  await using api = await ServedApi.start({ ruleset: rulesetOf(rules) });
  async function explain(limit?: number | string) {
    const body = { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'x' }] }], limit };
    return api.send('/api/explanations', { method: 'POST', body: JSON.stringify(body) });
  }
  expect(await (await explain()).json()).toMatchObject({ answer: { overallCode: 'OVER_LIMIT' } });
  expect(await (await explain(3)).json()).toMatchObject({
    descriptors: [{ counter: { requestsPerUnit: 3, count: 0 }, status: { code: 'OK', limitRemaining: 2 } }],
  });
  expect(await (await explain('x')).json()).toMatchObject({
    status: 400,
    detail: expect.stringContaining('$.limit: '),
  });
});

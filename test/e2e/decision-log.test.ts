import { Client, Metadata, credentials } from '@grpc/grpc-js';
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { RateLimitClient, requestMessage } from '../support/clients/grpc-client';
import { parseDecisionLine } from '../support/data/decision-log-schema';
import { RuleFolder } from '../support/data/rule-folder';
import { NamedPipe } from '../support/processes/named-pipe';
import { WeirProcess } from '../support/processes/weir-process';
import { until } from '../support/waiting/until';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1}}]\n',
};
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const ADDRESS = /^127\.0\.0\.1:\d+$/;

let rules: RuleFolder;
let folder: string;
let file: string;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'weir-decisions-'));
  file = join(folder, 'decisions.json');
});
afterEach(() => rm(folder, { recursive: true }));

function settings(more: Readonly<Record<string, string>>) {
  return { ...rules.env, DISABLE_STATS: 'true', ...more };
}

function recordsIn(text: string) {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map(parseDecisionLine);
}

/** The records in the file, once there are as many. */
function recordsInFile(count: number) {
  return until(`${count} lines in the file`, async () => {
    const records = recordsIn(await readFile(file, 'utf8'));
    return records.length >= count && records;
  });
}

async function callTwice(weir: WeirProcess): Promise<void> {
  using client = new RateLimitClient(weir.grpcAddress);
  await client.shouldRateLimit('shop', ['user=anna']);
  await client.shouldRateLimit('shop', ['user=anna']);
}

/** Calls with the trace context of a caller. */
function callInTrace(weir: WeirProcess): Promise<unknown> {
  const client = new Client(weir.grpcAddress, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set('traceparent', `00-${TRACE}-b7ad6b7169203331-00`);
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      SHOULD_RATE_LIMIT,
      (bytes: Buffer) => bytes,
      (bytes: Buffer) => bytes,
      requestMessage('shop', ['user=anna']),
      metadata,
      (error, response) => (error === null ? resolve(response) : reject(error)),
    );
  }).finally(() => client.close());
}

describe('the decision log', () => {
  it('has the decisions over a limit on standard output, with rule, count, caller and trace', async () => {
    await using weir = await WeirProcess.start({ env: settings({ DECISION_LOG: 'denied' }) });
    await callTwice(weir);
    await callInTrace(weir);
    await weir.line(new RegExp(TRACE));
    const records = recordsIn(weir.output);
    expect(records).toHaveLength(2);
    expect(records[0]).toMatchObject({
      code: 'OVER_LIMIT',
      caller: expect.stringMatching(ADDRESS),
      descriptors: [{ entries: ['user=anna'], reason: 'over_limit', rule: 'shop.user', count: 2 }],
    });
    expect(records[1]).toMatchObject({ traceId: TRACE, descriptors: [{ count: 3 }] });
  });

  it('has every decision with all, of /json too, and the requests that are rejected', async () => {
    await using weir = await WeirProcess.start({ env: settings({ DECISION_LOG: 'all', DECISION_LOG_OUTPUT: file }) });
    await callTwice(weir);
    const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'other', value: 'x' }] }] });
    const headers = { traceparent: `00-${TRACE}-b7ad6b7169203331-01` };
    await weir.http('/json', { method: 'POST', body, headers });
    await weir.http('/json', { method: 'POST', body: '{"domain": "shop"}' });
    const records = await recordsInFile(4);
    expect(records).toMatchObject([
      { code: 'OK', descriptors: [{ reason: 'within_limit', count: 1 }] },
      { code: 'OVER_LIMIT' },
      { code: 'OK', descriptors: [{ reason: 'no_match' }], caller: expect.stringMatching(ADDRESS), traceId: TRACE },
      { error: { code: 'invalid_request' } },
    ]);
  });

  it('is complete when the service has drained', async () => {
    await using weir = await WeirProcess.start({ env: settings({ DECISION_LOG: 'all', DECISION_LOG_OUTPUT: file }) });
    await callTwice(weir);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    expect(recordsIn(await readFile(file, 'utf8'))).toHaveLength(2);
  });

  it('continues in a new file when the old one is renamed', async () => {
    await using weir = await WeirProcess.start({ env: settings({ DECISION_LOG: 'all', DECISION_LOG_OUTPUT: file }) });
    await callTwice(weir);
    await recordsInFile(2);
    await rename(file, `${file}.1`);
    await weir.until('the new file', async () => {
      await callTwice(weir);
      return readFile(file, 'utf8').then(
        (text) => text !== '',
        () => false,
      );
    });
    expect(recordsIn(await readFile(file, 'utf8'))[0]).toMatchObject({ domain: 'shop' });
  });

  it('has the decisions of all workers, and is complete when they have drained', async () => {
    const env = settings({ DECISION_LOG: 'all', DECISION_LOG_OUTPUT: file, WORKERS: '2' });
    await using weir = await WeirProcess.start({ env });
    for (let connection = 0; connection < 4; connection += 1) await callTwice(weir);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    const records = recordsIn(await readFile(file, 'utf8'));
    expect(records).toHaveLength(8);
    for (const record of records) expect(record['caller']).toMatch(ADDRESS);
  });

  it('is between the lines of the log with stderr', async () => {
    await using weir = await WeirProcess.start({
      env: settings({ DECISION_LOG: 'all', DECISION_LOG_OUTPUT: 'stderr', LOG_FORMAT: 'json' }),
    });
    await callTwice(weir);
    await weir.line(/"type":"decision".*OVER_LIMIT/);
    const objects = weir.output.split('\n').map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
    expect(objects.filter(({ type }) => type === 'decision')).toHaveLength(2);
  });

  it('is empty with a sample of 0', async () => {
    const env = settings({ DECISION_LOG: 'all', DECISION_LOG_OUTPUT: file, DECISION_LOG_SAMPLE: '0' });
    await using weir = await WeirProcess.start({ env });
    await callTwice(weir);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    expect(await readFile(file, 'utf8')).toBe('');
  });
});

test('a standard output that is not read does not stop decisions; the lines are counted and reported', async () => {
  using pipe = new NamedPipe();
  await using weir = await WeirProcess.start({
    env: settings({ DECISION_LOG: 'all' }),
    outputs: { stdout: pipe.writer },
  });
  using client = new RateLimitClient(weir.grpcAddress);
  const descriptors = Array.from({ length: 20 }, (_, index) => `user=${index}`);
  await weir.until('dropped lines', async () => {
    for (let call = 0; call < 50; call += 1) await client.shouldRateLimit('shop', descriptors);
    return ((await weir.statistics()).get('ratelimit.decision_log.dropped') ?? 0) > 0;
  });
  await weir.line(/level=warning msg="lines of the decision log are dropped: its output is blocked/);
  pipe.read();
  await weir.line(/level=warning msg="lines of the decision log are written again" dropped=\d+/);
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
  expect(recordsIn(pipe.text).length).toBeGreaterThan(100);
});

describe('the service does not start', () => {
  async function failure(env: Readonly<Record<string, string>>): Promise<string> {
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...env }, awaitServing: false });
    expect(await weir.exited).toBe(1);
    return weir.output;
  }

  it('when decisions and statistics would be written to standard output', async () => {
    const output = await failure({ DECISION_LOG: 'all', USE_STATSD: 'false' });
    expect(output).toContain(
      'DECISION_LOG=all would write to standard output, as the statistics do when USE_STATSD is false',
    );
  });

  it('when the file cannot be opened', async () => {
    const output = await failure({
      DECISION_LOG: 'all',
      DECISION_LOG_OUTPUT: '/none/such/file',
      DISABLE_STATS: 'true',
    });
    expect(output).toContain('DECISION_LOG_OUTPUT=/none/such/file cannot be used: ENOENT: no such file or directory');
  });
});

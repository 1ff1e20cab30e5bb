import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { requestMessage } from '../support/clients/grpc-client';
import { callByHand } from '../support/clients/call-by-hand';
import { parseDecisionLine } from '../support/data/decision-log-schema';
import { until } from '../support/waiting/until';
import { Shop } from './shop';
import { TemporaryFolder } from '../support/data/temporary-folder';

const RULES = 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1}}]\n';
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CONTEXT = { traceparent: `00-${TRACE}-b7ad6b7169203331-00` };
const ADDRESS = /^127\.0\.0\.1:\d+$/;

let folder: TemporaryFolder;
let file: string;
beforeEach(() => {
  folder = new TemporaryFolder();
  file = folder.at('decisions.json');
});
afterEach(() => folder[Symbol.dispose]());

function start(env: Readonly<Record<string, string>>): Promise<Shop> {
  return Shop.start({ env: { DISABLE_STATS: 'true', ...env } }, RULES);
}

function recordsIn(text: string) {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map(parseDecisionLine);
}

/** What the built program prints of the file. */
function replay(rules: string): unknown {
  const args = [join(__dirname, '../../dist/cli/weir-check.js'), rules, '-replay', '-', '-json'];
  const stdout = execFileSync(process.execPath, args, { input: readFileSync(file), encoding: 'utf8' });
  return (JSON.parse(stdout) as { total: unknown }).total;
}

async function hitTwice(shop: Shop): Promise<void> {
  await shop.hit('anna');
  await shop.hit('anna');
}

describe('the decision log', () => {
  it('has the decisions over a limit on standard output with denied, with rule, count, caller and trace', async () => {
    await using shop = await start({ DECISION_LOG: 'denied' });
    await hitTwice(shop);
    await callByHand(shop.weir.grpcAddress, SHOULD_RATE_LIMIT, requestMessage('shop', ['user=anna']), CONTEXT);
    await shop.weir.line(new RegExp(TRACE));
    const [first, second, ...others] = recordsIn(shop.weir.output);
    expect(first).toMatchObject({
      code: 'OVER_LIMIT',
      caller: expect.stringMatching(ADDRESS),
      descriptors: [{ entries: ['user=anna'], reason: 'over_limit', rule: 'shop.user', count: 2 }],
    });
    expect(second).toMatchObject({ traceId: TRACE, descriptors: [{ count: 3 }] });
    expect(others).toEqual([]);
    // Whoever reads it knows the values of the callers anyway.
    await shop.weir.until('the warning', async () => {
      await shop.client.shouldRateLimit('shop', ['plan=free']);
      return /msg="calls are not limited: .* descriptors="plan=free"/.test(shop.weir.output);
    });
  });

  it('has every decision and rejection in a file with all, continues after a rename, and is complete at the end', async () => {
    await using shop = await start({ DECISION_LOG: 'all', DECISION_LOG_OUTPUT: file });
    await hitTwice(shop);
    await shop.json('ben', CONTEXT);
    await shop.weir.http('/json', { method: 'POST', body: '{"domain": "shop"}' });
    await until('four lines', async () => recordsIn(await readFile(file, 'utf8')).length === 4);
    await rename(file, `${file}.1`);
    await shop.weir.until('the new file', async () => {
      await shop.hit('eva');
      return readFile(file, 'utf8').then(
        (text) => text !== '',
        () => false,
      );
    });
    await shop.drain();
    const records = recordsIn((await readFile(`${file}.1`, 'utf8')) + (await readFile(file, 'utf8')));
    expect(records.slice(0, 4)).toMatchObject([
      { code: 'OK', descriptors: [{ reason: 'within_limit', count: 1 }] },
      { code: 'OVER_LIMIT' },
      { code: 'OK', caller: expect.stringMatching(ADDRESS), traceId: TRACE },
      { error: { code: 'invalid_request' } },
    ]);
    const counts = records.slice(4).map(({ descriptors }) => (descriptors as readonly { count: number }[])[0]?.count);
    expect(counts).toEqual(counts.map((_, index) => index + 1));
  });

  it('has the decisions of all workers, and is complete when they have drained', async () => {
    await using shop = await start({ DECISION_LOG: 'all', DECISION_LOG_OUTPUT: file, WORKERS: '2' });
    const message = requestMessage('shop', ['user=anna']);
    for (const _ of [1, 2, 3, 4]) await callByHand(shop.weir.grpcAddress, SHOULD_RATE_LIMIT, message);
    await shop.drain();
    const callers = recordsIn(await readFile(file, 'utf8')).map((record) => record['caller']);
    expect(callers).toEqual(Array.from({ length: 4 }, () => expect.stringMatching(ADDRESS)));
  });

  it.each(['all', 'denied'] as const)(
    'has reservations with their id, and with all also how they end: %s',
    async (which) => {
      await using shop = await start({ DECISION_LOG: which, DECISION_LOG_OUTPUT: file, LOG_LEVEL: 'debug' });
      const descriptors = [
        { entries: [{ key: 'user', value: 'anna' }] },
        { entries: [{ key: 'plan', value: 'free' }] },
      ];
      async function call(method: string, path: string, body?: object): Promise<number> {
        const headers = { 'content-type': 'application/json', ...CONTEXT };
        const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
        return (await shop.weir.http(`/v1/reservations${path}`, init)).status;
      }
      const reserve = { domain: 'shop', descriptors, ttl: '60s' };
      const calls = [
        ['POST', '', { ...reserve, id: 'a' }],
        ['POST', '', { ...reserve, id: 'a' }],
        ['POST', '', { ...reserve, id: 'b' }],
        ['POST', '/a/settle', { hits: '0' }],
        ['POST', '', { ...reserve, id: 'c' }],
        ['DELETE', '/c'],
        ['DELETE', '/c'],
        ['POST', '', { ...reserve, id: 'd', domain: '' }],
      ] as const;
      const statuses: number[] = [];
      for (const [method, path, body] of calls) statuses.push(await call(method, path, body));
      expect(statuses).toEqual([201, 201, 429, 200, 201, 200, 200, 400]);
      await shop.drain();
      const records = recordsIn(await readFile(file, 'utf8'));
      const denied = { type: 'decision', reservation: 'b', code: 'OVER_LIMIT', traceId: TRACE };
      if (which === 'denied') return expect(records).toMatchObject([denied]);
      const ended = { reserved: 1, hits: 0, added: -1, entries: ['user=anna'] };
      const source = { caller: expect.stringMatching(ADDRESS), traceId: TRACE };
      expect(records).toMatchObject([
        { reservation: 'a', code: 'OK', descriptors: [{ count: 1, hits: 1 }, { reason: 'no_match' }], ...source },
        denied,
        { type: 'reservation', reservation: 'a', state: 'settled', descriptors: [ended, { added: 0 }], ...source },
        { reservation: 'c', code: 'OK' },
        { type: 'reservation', reservation: 'c', state: 'cancelled', descriptors: [ended, { reserved: 0 }], ...source },
        { reservation: 'd', error: { code: 'invalid_request' } },
      ]);
      expect(shop.weir.output).toMatch(/reservation ended.*id=a state=settled descriptors="user=anna: 0 of 1 reserved/);
      const same = folder.write('same.yaml', RULES);
      expect(replay(same)).toMatchObject({ calls: 3 });
    },
  );

  it('is what weir-check replays from standard input, with no change by the rules that wrote it, and one by others', async () => {
    await using shop = await start({ DECISION_LOG: 'all', DECISION_LOG_OUTPUT: file });
    await hitTwice(shop);
    await shop.drain();
    const same = folder.write('same.yaml', RULES);
    const candidate = folder.write('candidate.yaml', RULES.replace('requests_per_unit: 1', 'requests_per_unit: 2'));
    expect(replay(same)).toMatchObject({ calls: 2, allowedBefore: 1, allowedAfter: 1, newlyAllowed: 0 });
    expect(replay(candidate)).toMatchObject({ calls: 2, allowedBefore: 1, allowedAfter: 2, newlyAllowed: 1 });
  });
});

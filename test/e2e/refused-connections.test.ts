import type net from 'node:net';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';
import { type RawClient, connectPlain } from '../grpc/http2/raw-client';
import { hello } from '../grpc/http2/frames';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 9}}]\n',
};

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

function connect(weir: WeirProcess, count: number): RawClient[] {
  const address = { address: '127.0.0.1', family: 'IPv4', port: weir.ports.grpc } satisfies net.AddressInfo;
  return Array.from({ length: count }, () => connectPlain(address).send(hello()));
}

function linesOf(weir: WeirProcess, text: string): readonly string[] {
  return weir.output.split('\n').filter((line) => line.includes(text));
}

describe.each([
  {
    bound: 'GRPC_MAX_CONNECTIONS',
    options: { env: { GRPC_MAX_CONNECTIONS: '4' } },
    kind: 'connections',
    reason: /GRPC_MAX_CONNECTIONS are open" open=4 limit=4$/,
    openAtMost: 4,
  },
  {
    bound: 'the limit of open files',
    options: { openFiles: 64 },
    kind: 'file_descriptors',
    reason: /the limit of open files \(ulimit -n\) is almost reached" open=\d+ limit=64$/,
    openAtMost: 48,
  },
])('a service whose connections reach $bound', ({ options, kind, reason, openAtMost }) => {
  it('refuses further ones, keeps serving, and logs the beginning and the end', async () => {
    await using weir = await WeirProcess.start({ ...options, env: { ...rules.env, ...options.env } });
    using client = new RateLimitClient(weir.grpcAddress);
    await client.shouldRateLimit('shop', ['user=a']);
    const others = connect(weir, 60);
    const settled = others.map((other) =>
      other.until('SETTINGS or the end', () => other.isEnded || other.frames.length > 0),
    );
    await Promise.all(settled);
    const refused = others.filter(({ frames }) => frames.length === 0).length;

    expect(refused).toBeGreaterThanOrEqual(60 - openAtMost);
    expect(refused).toBeLessThan(60);
    expect((await weir.statistics()).get(`ratelimit_server.http2.${kind}`)).toBe(refused);
    expect(await client.shouldRateLimit('shop', ['user=a'])).toMatchObject({ overallCode: 1 });
    await weir.line(/gRPC connections are refused/);
    expect(linesOf(weir, 'gRPC connections are refused')).toEqual([expect.stringMatching(reason)]);
    expect(linesOf(weir, 'gRPC connections are refused')[0]).toContain('level=warning');

    for (const other of others) other.close();
    const end = await weir.line(/gRPC connections are accepted again/);
    expect(end).toContain(`level=warning`);
    expect(end).toContain(`refused=${refused} `);
    using late = new RateLimitClient(weir.grpcAddress);
    expect(await late.shouldRateLimit('shop', ['user=b'])).toMatchObject({ overallCode: 1 });
    expect(linesOf(weir, 'gRPC connections are')).toHaveLength(2);
  });
});

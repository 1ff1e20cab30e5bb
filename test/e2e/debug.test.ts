import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { callByHand } from '../support/clients/call-by-hand';
import type { WeirProcess } from '../support/processes/weir-process';
import { Shop } from './shop';

const EXPOSED = 'the debug listener can be reached from other machines';
const TOKEN = 'token-of-the-operators';
const PEER = String.raw`peer=127\.0\.0\.1:\d+`;

// In a process of its own: a snapshot takes time and memory in proportion to the heap, and that of a test process is
// large.
let shop: Shop;
beforeAll(async () => {
  const NODE_OPTIONS = `--require ${join(__dirname, '../support/processes/report-object-id.cjs')}`;
  const guarded = { DEBUG_HOST: '0.0.0.0', DEBUG_ALLOWED_HOSTS: 'weir.example.com', OPERATOR_TOKEN: TOKEN };
  shop = await Shop.start({ env: { LOG_LEVEL: 'debug', DISABLE_STATS: 'true', ...guarded, NODE_OPTIONS } });
});
afterAll(() => shop[Symbol.asyncDispose]());

it('a debug listener that other machines reach causes a warning with its setting', () => {
  expect(shop.weir.output).toMatch(new RegExp(`level=warning msg="${EXPOSED} \\(DEBUG_HOST=0\\.0\\.0\\.0\\)`));
});

describe('requests and bytes that are rejected', () => {
  async function provoke(weir: WeirProcess): Promise<void> {
    expect((await weir.http('/json', { method: 'POST', body: '{"domain": 5}' })).status).toBe(400);
    // A field of an impossible wire type.
    expect(await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, Buffer.from([0x0f]))).toBe(13);
    const socket = connect(weir.ports.grpc, '127.0.0.1').on('error', () => undefined);
    socket.resume().write('GET / HTTP/1.1\r\n\r\n');
    await once(socket, 'close');
  }

  it('are each a line with the reason at level debug, and counted', async () => {
    await provoke(shop.weir);
    expect(await shop.weir.line(/malformed request rejected" via=\/json/)).toMatch(
      new RegExp(String.raw`level=debug .* reason="[^"]*domain[^"]*" ${PEER}$`),
    );
    expect(await shop.weir.line(/malformed request rejected" via=gRPC/)).toMatch(/level=debug .* reason="?[^" ]+/);
    expect(await shop.weir.line(/gRPC connection or stream rejected/)).toMatch(
      new RegExp(String.raw`level=debug .* kind=protocol_error reason="[^"]*preface[^"]*" ${PEER}$`),
    );
    expect((await shop.weir.statistics()).get('ratelimit_server.http2.protocol_error')).toBe(1);
  });

  it('are no line at level info, but for a sample of the calls, without values', async () => {
    await using quiet = await Shop.start({ env: { DISABLE_STATS: 'true' } });
    await provoke(quiet.weir);
    const lines = quiet.weir.output.split('\n').filter((line) => new RegExp(`rejected|${EXPOSED}`).test(line));
    // One per second is examined.
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThan(3);
    const reason = '(?:a body of /json is no valid RateLimitRequest|invalid wire type 7[^"]*)';
    for (const line of lines) {
      expect(line).toMatch(
        new RegExp(`level=warning msg="calls are rejected without a decision" reason="${reason}" ${PEER}$`),
      );
    }
  });

  it.each([
    ['/pb.lyft.ratelimit.RateLimitService/ShouldRateLimit', 12, 'unknown service pb.lyft.ratelimit.RateLimitService'],
    [SHOULD_RATE_LIMIT, 3, 'rate limit domain must not be empty'],
  ])('of calls are warned of with the reason and the peer: %s, status %i', async (path, status, reason) => {
    await using quiet = await Shop.start({ env: { DISABLE_STATS: 'true' } });
    expect(await callByHand(quiet.weir.grpcAddress, path, Buffer.alloc(0))).toBe(status);
    expect(await quiet.weir.line(/calls are rejected without a decision/)).toMatch(
      new RegExp(`level=warning .* reason="${reason}" ${PEER}$`),
    );
  });
});

it('a warning about calls that nothing limits has their values at level debug, as other lines do', async () => {
  await shop.client.shouldRateLimit('shop', ['plan=free']);
  expect(await shop.weir.line(/calls are not limited:/)).toMatch(/level=warning .* descriptors="plan=free"/);
});

/** The response of the debug listener, whose body has not been read. */
function send(method: string, path: string, headers: Record<string, string>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const url = `http://127.0.0.1:${shop.weir.ports.debug}${path}`;
    httpRequest(url, { agent: false, method, headers }, resolve).once('error', reject).end();
  });
}

it('a page of another site gets nothing from the debug listener, by whatever name it calls it', async () => {
  async function statusOf(...[method, path, headers]: Parameters<typeof send>): Promise<number | undefined> {
    const response = await send(method, path, { ...headers, Authorization: `Bearer ${TOKEN}` });
    response.destroy();
    return response.statusCode;
  }
  const rebound = { Host: 'evil.example', Origin: 'http://evil.example', 'Sec-Fetch-Site': 'same-origin' };
  for (const path of ['/', '/stats', '/api/settings']) {
    expect(await statusOf('GET', path, rebound)).toBe(421);
    expect(await statusOf('GET', path, { 'Sec-Fetch-Site': 'cross-site' })).toBe(403);
    expect(await statusOf('GET', path, { Host: 'weir.example.com', 'Sec-Fetch-Site': 'same-origin' })).toBe(200);
  }
  expect(await statusOf('POST', '/debug/pprof/heap?format=v8', rebound)).toBe(421);
  expect(await statusOf('POST', '/debug/pprof/heap?format=v8', { Origin: 'http://evil.example' })).toBe(403);
  expect(await statusOf('GET', '/healthcheck', rebound)).toBe(200);
});

describe('a heap snapshot', () => {
  function request(token = TOKEN): Promise<IncomingMessage> {
    return send('POST', '/debug/pprof/heap?format=v8', { Authorization: `Bearer ${token}` });
  }

  /** The next snapshot: as much time as the last one took must pass before it. */
  function nextSnapshot(): Promise<IncomingMessage> {
    return shop.weir.until('a heap snapshot', async () => {
      const response = await request();
      if (response.statusCode === 200) return response;
      response.destroy();
      return undefined;
    });
  }

  it('is a file in the format of browser dev tools, and leaves no ids of objects, which slow down the collector', async () => {
    const response = await nextSnapshot();
    expect(response.headers).toMatchObject({
      'content-type': 'application/json',
      'content-disposition': expect.stringMatching(/^attachment; filename="weir-[\dTZ.-]+\.heapsnapshot"$/),
    });
    const { snapshot, nodes, strings } = JSON.parse(await text(response));
    expect(nodes.length).toBe(snapshot.node_count * snapshot.meta.node_fields.length);
    expect(strings).toContain('Http2Server');
    shop.weir.signal('SIGUSR2');
    expect(await shop.weir.line(/^object id: /)).toBe('object id: 0');
  });

  it('is written alone, and another one is possible when its caller has disconnected', async () => {
    const first = await nextSnapshot();
    const second = await request();
    const message = 'another heap snapshot is being written or was just written; try again later';
    expect([second.statusCode, JSON.parse(await text(second))]).toEqual([429, { error: { code: 'busy', message } }]);
    expect(second.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    first.destroy();
    (await nextSnapshot()).destroy();
  });
});

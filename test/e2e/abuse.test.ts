import { once } from 'node:events';
import { type Socket, connect } from 'node:net';
import { FrameType } from '../../src/grpc/http2/frames/protocol';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { get, hello, literal, headers, ping, request, rstStream, settings, block, REQUEST } from '../grpc/http2/frames';
import { RawClient } from '../grpc/http2/raw-client';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { residentMemory } from '../support/processes/process-memory';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};

let rules: RuleFolder;
let weir: WeirProcess;
let regularClient: RateLimitClient;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
  weir = await WeirProcess.start({ env: rules.env });
  regularClient = new RateLimitClient(weir.grpcAddress);
});
afterAll(async () => {
  regularClient[Symbol.dispose]();
  await weir[Symbol.asyncDispose]();
  await rules[Symbol.asyncDispose]();
});

function times(count: number, make: (at: number) => Buffer) {
  return Buffer.concat(Array.from({ length: count }, (_, at) => make(at)));
}
function stream(at: number) {
  return 2 * at + 1;
}

async function attacker(): Promise<RawClient> {
  const socket = connect(weir.ports.grpc, '127.0.0.1');
  await once(socket, 'connect');
  return new RawClient(socket).send(hello());
}

/** The headers of a ShouldRateLimit call, without its message. */
function callHeaders(id: number) {
  return headers(id, request(SHOULD_RATE_LIMIT, ['content-type', 'application/grpc'], ['te', 'trailers']));
}

async function expectRegularService(): Promise<void> {
  expect((await regularClient.shouldRateLimit('shop', ['user=regular'])).overallCode).toBe(1);
}

describe('an abusive gRPC client', () => {
  it.each<[kind: string, abuse: () => Buffer]>([
    ['rapid_reset', () => times(20_000, (at) => Buffer.concat([callHeaders(stream(at)), rstStream(stream(at))]))],
    ['ping_flood', () => times(100, () => ping())],
    ['settings_flood', () => times(1_000, () => settings())],
    ['protocol_error', () => Buffer.concat([get(1), get(2)])],
    [
      'header_list',
      () =>
        headers(1, Buffer.concat([block(REQUEST), ...Array.from({ length: 200 }, () => literal(['a', 'b']))]), {
          endStream: true,
        }),
    ],
  ])('is counted as %s, and other clients are served', async (kind, abuse) => {
    const name = `ratelimit_server.http2.${kind}`;
    const before = (await weir.statistics()).get(name) ?? 0;
    const client = await attacker();
    client.send(abuse());
    await weir.until(`${kind} to be counted`, async () => ((await weir.statistics()).get(name) ?? 0) > before);
    await expectRegularService();
    client.socket.destroy();
  });
});

it('2,000 idle connections block no other client and leak no memory', async () => {
  await expectRegularService();
  const before = residentMemory(weir.pid!);
  const idle: Socket[] = [];
  for (let batch = 0; batch < 20; batch += 1) {
    const opened = Array.from({ length: 100 }, () =>
      connect(weir.ports.grpc, '127.0.0.1').on('error', () => undefined),
    );
    await Promise.all(opened.map((socket) => once(socket, 'connect')));
    for (const socket of opened) socket.write(hello());
    idle.push(...opened);
  }
  await expectRegularService();
  expect(residentMemory(weir.pid!) - before).toBeLessThan(100);
  for (const socket of idle) socket.destroy();
  await expectRegularService();
});

it('calls of 200,000 different unknown methods grow neither memory nor statistics', async () => {
  const client = await attacker();
  function call(at: number) {
    return headers(
      stream(at),
      request(`/no.such.Service/Method${at}`, ['content-type', 'application/grpc'], ['te', 'trailers']),
      { endStream: true },
    );
  }
  function responses() {
    return client.frames.filter(({ type }) => type === FrameType.HEADERS).length;
  }
  let names = 0;
  let memory = 0;
  for (let round = 0; round < 20; round += 1) {
    for (let part = 0; part < 20; part += 1) {
      const first = (round * 20 + part) * 500;
      client.frames.length = 0;
      client.send(times(500, (at) => call(first + at)));
      await client.until('500 responses', () => responses() === 500);
    }
    if (round === 4) {
      names = (await weir.statistics()).size;
      memory = residentMemory(weir.pid!);
    }
  }
  expect((await weir.statistics()).size).toBe(names);
  expect(residentMemory(weir.pid!) - memory).toBeLessThan(60);
  await expectRegularService();
  client.socket.destroy();
});

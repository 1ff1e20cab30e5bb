import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type Socket, connect } from 'node:net';
import { FrameType } from '../../src/grpc/http2/frames/protocol';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { get, hello, literal, headers, ping, request, rstStream, settings, block, REQUEST } from '../grpc/http2/frames';
import { RawClient } from '../grpc/http2/raw-client';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};

let rules: RuleFolder;
let weir: WeirProcess;
let good: RateLimitClient;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
  weir = await WeirProcess.start({ env: rules.env });
  good = new RateLimitClient(weir.grpcAddress);
});
afterAll(async () => {
  good[Symbol.dispose]();
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

/** A call of the decision method whose message has not come yet. */
function begun(id: number) {
  return headers(id, request(SHOULD_RATE_LIMIT, ['content-type', 'application/grpc'], ['te', 'trailers']));
}

/** Memory of the process, in MiB. */
async function residentMemory(): Promise<number> {
  const status = await readFile(`/proc/${weir.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

async function expectGoodAnswers(): Promise<void> {
  expect((await good.ask('shop', ['user=good'])).overallCode).toBe(1);
}

describe('an abuser of the gRPC port is counted under what it did, and a good client beside it is answered', () => {
  it.each<[kind: string, abuse: () => Buffer]>([
    ['rapid_reset', () => times(20_000, (at) => Buffer.concat([begun(stream(at)), rstStream(stream(at))]))],
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
  ])('%s', async (kind, abuse) => {
    const name = `ratelimit_server.http2.${kind}`;
    const before = (await weir.statistics()).get(name) ?? 0;
    const client = await attacker();
    client.send(abuse());
    await weir.until(`${kind} to be counted`, async () => ((await weir.statistics()).get(name) ?? 0) > before);
    await expectGoodAnswers();
    client.socket.destroy();
  });
});

it('2,000 connections that do nothing keep nobody else from being answered, and leave no memory behind', async () => {
  await expectGoodAnswers();
  const before = await residentMemory();
  const idle: Socket[] = [];
  for (let batch = 0; batch < 20; batch += 1) {
    const opened = Array.from({ length: 100 }, () =>
      connect(weir.ports.grpc, '127.0.0.1').on('error', () => undefined),
    );
    await Promise.all(opened.map((socket) => once(socket, 'connect')));
    for (const socket of opened) socket.write(hello());
    idle.push(...opened);
  }
  await expectGoodAnswers();
  expect((await residentMemory()) - before).toBeLessThan(100);
  for (const socket of idle) socket.destroy();
  await expectGoodAnswers();
});

it('200,000 methods that do not exist, each with a name of its own, grow neither memory nor statistics', async () => {
  const client = await attacker();
  function call(at: number) {
    return headers(
      stream(at),
      request(`/no.such.Service/Method${at}`, ['content-type', 'application/grpc'], ['te', 'trailers']),
      { endStream: true },
    );
  }
  function answered() {
    return client.frames.filter(({ type }) => type === FrameType.HEADERS).length;
  }
  let names = 0;
  let memory = 0;
  for (let round = 0; round < 20; round += 1) {
    for (let part = 0; part < 20; part += 1) {
      const first = (round * 20 + part) * 500;
      client.frames.length = 0;
      client.send(times(500, (at) => call(first + at)));
      await client.until('500 answers', () => answered() === 500);
    }
    if (round === 4) {
      names = (await weir.statistics()).size;
      memory = await residentMemory();
    }
  }
  expect((await weir.statistics()).size).toBe(names);
  expect((await residentMemory()) - memory).toBeLessThan(60);
  await expectGoodAnswers();
  client.socket.destroy();
});

import { once } from 'node:events';
import { connect } from 'node:net';
import { FrameType } from '../../../src/grpc/http2/protocol';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import {
  block,
  continuation,
  data,
  endedOf,
  fieldsOf,
  headers,
  hello,
  indexed,
  inserted,
  literal,
  ping,
  request,
  rstStream,
  settings,
  streamOf,
  times,
} from '../../grpc/http2/frames';
import { RawClient } from '../../grpc/http2/raw-client';
import { prefix, prefixed } from '../../support/clients/http2-connection';
import { until } from '../../support/waiting/until';
import { requestMessage } from '../../support/clients/grpc-client';
import {
  type Answers,
  type Attack,
  GrpcPeer,
  HttpPeer,
  type Target,
  concurrently,
  rawPeer,
  recordGoaway,
  statusName,
} from '../peers';
import { COUNTED_RULE } from './http-requests';

/** The headers of a call, without its message. */
function callHeaders(at: number, path = SHOULD_RATE_LIMIT, endStream = false): Buffer {
  const fields = request(path, ['content-type', 'application/grpc'], ['te', 'trailers']);
  return headers(streamOf(at), fields, { endStream });
}

/** Sends frames on connections of their own, one after the other, each until the service ends it. */
function flood(connections: number, make: () => Buffer): Attack['run'] {
  let bytes: Buffer | undefined;
  return async (target, answers) => {
    bytes ??= make();
    for (let round = 0; round < connections; round += 1) {
      const peer = await rawPeer(target);
      peer.send(bytes);
      await recordGoaway(peer, answers);
    }
  };
}

/** A block with as many fields as fit, each a reference to one long value in the dynamic table: 48 MB of headers. */
function headerBomb(at: number): Buffer {
  const value = at === 0 ? inserted(['bomb', 'x'.repeat(4_000)]) : Buffer.alloc(0);
  const fields = Buffer.concat([block(), value, Buffer.alloc(12_000, indexed(62))]);
  return headers(streamOf(at), fields, { endStream: true });
}

/** Sends requests that are answered with headers only, and records the status of each. */
function rejectedRequests(count: number, make: (at: number) => Buffer): Attack['run'] {
  return async (target, answers) => {
    const peer = await rawPeer(target);
    for (let first = 0; first < count; first += 50) {
      peer.frames.length = 0;
      peer.send(times(50, (at) => make(first + at)));
      await peer.until('50 responses', () => peer.isEnded || peer.frames.filter(isHeaders).length === 50);
      for (const { payload } of peer.frames.filter(isHeaders)) {
        answers.add(statusName(Number(fieldsOf(payload)['grpc-status'])));
      }
    }
    peer.close();
  };
}

function isHeaders({ type }: { readonly type: number }): boolean {
  return type === FrameType.HEADERS;
}

/** Opens calls, never sends their messages, and leaves when the service has read everything. */
async function unfinishedCalls(target: Target, answers: Answers): Promise<void> {
  const peers = await Promise.all(Array.from({ length: 100 }, () => rawPeer(target)));
  const bytes = times(1_000, (at) => callHeaders(at));
  for (const peer of peers) {
    peer.send(bytes, ping('the end.'));
    await peer.until('everything to be read', () => peer.isEnded || peer.isAcknowledged('the end.'));
  }
  leave(peers, answers);
}

/** Opens calls of the health service that stay open, and closes all connections when each call has an answer. */
async function openWatches(target: Target, answers: Answers): Promise<void> {
  const peers = await Promise.all(Array.from({ length: 200 }, () => rawPeer(target)));
  const watches = times(200, (at) =>
    Buffer.concat([callHeaders(at, '/grpc.health.v1.Health/Watch'), data(streamOf(at), prefix(0), true)]),
  );
  for (const peer of peers) peer.send(watches);
  for (const peer of peers) await peer.until('200 answers', () => peer.frames.filter(isHeaders).length === 200);
  for (const peer of peers) {
    answers.add('open');
    for (const id of endedOf(peer.frames)) {
      const { payload } = peer.frames.find(({ stream, type }) => stream === id && type === FrameType.HEADERS)!;
      answers.add(statusName(Number(fieldsOf(payload)['grpc-status'])));
    }
    peer.close();
  }
}

/** Makes a call on each connection, and ends the client's half of it at once. */
async function halfClosedCalls(target: Target, answers: Answers): Promise<void> {
  const message = data(1, prefixed(requestMessage('counted', ['other=1'])), true);
  await concurrently(500, 20, async () => {
    const peer = new RawClient(connect(target.ports.grpc, '127.0.0.1'));
    peer.socket.end(Buffer.concat([hello(), callHeaders(0), message]));
    await peer.until('the end of the connection', () => peer.isEnded);
    const trailers = peer.frames.findLast(isHeaders);
    answers.add(trailers === undefined ? 'closed' : statusName(Number(fieldsOf(trailers.payload)['grpc-status'])));
    peer.close();
  });
}

/** A gRPC message that asks server reflection for the services: seven bytes for 162. */
const LIST_SERVICES = Buffer.concat([prefix(2), Buffer.from([0x3a, 0])]);

/** Sends reflection requests, each connection on one stream, until the service ends it. */
async function reflections(target: Target, answers: Answers): Promise<void> {
  const call = callHeaders(0, '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo');
  const bytes = Buffer.concat([
    call,
    data(
      1,
      times(1_000, () => LIST_SERVICES),
      true,
    ),
  ]);
  await concurrently(200, 20, async () => {
    const peer = await rawPeer(target);
    peer.send(bytes);
    await peer.until('the stream to end', () => endedOf(peer.frames).length > 0);
    const { payload } = peer.frames.findLast(isHeaders)!;
    answers.add(statusName(Number(fieldsOf(payload)['grpc-status'])));
    peer.close();
  });
}

const BEGINNINGS = [
  Buffer.alloc(0),
  hello().subarray(0, 12),
  hello(),
  Buffer.concat([hello(), callHeaders(0).subarray(0, 20)]),
];

/**
 * Opens connections, sends the beginning of something on each, and leaves when the service has accepted enough of them.
 */
function silentConnections(count: number, isEnough: (peers: readonly RawClient[]) => boolean): Attack['run'] {
  return async (target, answers) => {
    const peers: RawClient[] = [];
    await concurrently(count, 100, async (at) => {
      const peer = new RawClient(connect(target.ports.grpc, '127.0.0.1'));
      peers.push(peer);
      await once(peer.socket, 'connect');
      peer.send(BEGINNINGS[at % BEGINNINGS.length]!);
    });
    // The system accepts them before the service does.
    await until('the service has accepted enough', () => isEnough(peers));
    leave(peers, answers);
  };
}

/** With one process, and with two workers, it is about 20; with connections that are handed over without a bound, 3. */
const ENOUGH_SERVED = 8;

/** Connects and resets at once, 20,000 times, and records how many new connections of others are served meanwhile. */
async function resetConnections(target: Target, answers: Answers): Promise<void> {
  const { grpc, http } = target.ports;
  let isOver = false;
  let served = 0;
  async function connectAgainAndAgain(): Promise<void> {
    while (!isOver) {
      using probe = new HttpPeer(http);
      await probe.send('GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n');
      await probe.answered;
      answers.add(probe.answer);
      using caller = new GrpcPeer(target, answers);
      await caller.call(requestMessage('well-behaved', ['counted=0']));
      served += 1;
    }
  }
  const others = connectAgainAndAgain();
  await concurrently(20_000, 50, async () => {
    const socket = connect(grpc, '127.0.0.1').on('error', () => undefined);
    await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
    socket.resetAndDestroy();
  });
  isOver = true;
  await others;
  answers.add(served >= ENOUGH_SERVED ? 'others served' : `${served} others served`);
}

const GOOD_CONNECTIONS = 99;

/**
 * Connects and closes at once without pause, 16 at a time, until another address has made a call on each of 99 new
 * connections; and opens 500 connections in a row from a third address, which stay.
 */
async function stormOfConnections(target: Target, answers: Answers): Promise<void> {
  const { grpc } = target.ports;
  let isOver = false;
  const storm = concurrently(16, 16, async () => {
    while (!isOver) {
      const socket = connect(grpc, '127.0.0.1').on('error', () => undefined);
      await once(socket, 'connect').catch(() => undefined);
      socket.destroy();
    }
  });
  try {
    await target.weir.until('more to wait than may', async () => {
      return (await target.weir.statistics()).has('ratelimit_server.http2.hand_over');
    });
    let failed = 0;
    for (let at = 0; at < GOOD_CONNECTIONS; at += 1) {
      const outcome: Answers = new Set();
      using caller = new GrpcPeer(target, outcome, '127.0.0.2');
      await caller.call(requestMessage('well-behaved', ['counted=0']));
      if (!outcome.has('OK')) failed += 1;
    }
    answers.add(failed <= GOOD_CONNECTIONS * 0.05 ? 'others served' : `${failed} of others refused`);
    const idle = Array.from({ length: 500 }, () =>
      connect({ port: grpc, host: '127.0.0.1', localAddress: '127.0.0.3' }),
    );
    const peers = idle.map((socket) => new RawClient(socket).send(hello()));
    await until('each is served', () => peers.every(({ frames, isEnded }) => isEnded || frames.length > 0));
    leave(peers, answers);
  } finally {
    isOver = true;
    await storm;
  }
}

function leave(peers: readonly RawClient[], answers: Answers): void {
  for (const peer of peers) {
    answers.add(peer.isEnded ? 'closed' : 'open');
    peer.close();
  }
}

/** A header block that is not complete. */
const begun = headers(1, block(), { endHeaders: false });

/** Frames of HTTP/2 that are valid one by one. */
export const HTTP2_FRAMES = {
  '10 connections, each with 20,000 calls that are reset at once': {
    run: flood(10, () => times(20_000, (at) => Buffer.concat([callHeaders(at), rstStream(streamOf(at))]))),
  },
  '100 connections, each with a header block in 10,000 CONTINUATION frames': {
    run: flood(100, () => Buffer.concat([begun, times(10_000, () => continuation(1, literal(['a', 'b'])))])),
  },
  '100 connections, each with 10,000 SETTINGS frames': { run: flood(100, () => times(10_000, () => settings([4, 1]))) },
  '100 connections, each with 10,000 PING frames': { run: flood(100, () => times(10_000, () => ping())) },
  '20 connections, each with a message in DATA frames of one byte': {
    run: flood(20, () => Buffer.concat([callHeaders(0), data(1, prefix(100_000)), times(50_000, () => data(1, 'x'))])),
  },
  '200 calls, each with 48 MB of headers in 12 KB': { run: rejectedRequests(200, headerBomb) },
  '20,000 calls of methods that do not exist, each with a new name': {
    run: rejectedRequests(20_000, (at) => callHeaders(at, `/no.such.Service/Method${at}`, true)),
  },
  '100 connections with 1,000 calls each, without their messages': { run: unfinishedCalls },
  '20,000 connections that are reset at once': { run: resetConnections },
  '20,000 connections that are reset at once, with WORKERS=2': { settings: { WORKERS: '2' }, run: resetConnections },
  'connections from 16 sockets that are closed at once, without pause, with WORKERS=2': {
    settings: { WORKERS: '2', GRPC_MAX_CONNECTIONS: '2000' },
    run: stormOfConnections,
  },
  '200 connections with 200 health Watches each, all closed at once': { run: openWatches },
  '200 connections with 1,000 reflection requests each': { run: reflections },
  '500 connections with a call and the end of half of it in one segment, with Redis': {
    store: 'redis',
    rules: COUNTED_RULE,
    run: halfClosedCalls,
  },
  '2,000 connections that send nothing, or stop inside a frame': {
    run: silentConnections(2_000, (peers) => peers.filter(({ frames }) => frames.length > 0).length >= 1_000),
  },
  '500 connections where 200 are permitted': {
    settings: { GRPC_MAX_CONNECTIONS: '200' },
    run: silentConnections(500, (peers) => peers.some(({ isEnded }) => isEnded)),
  },
} as const satisfies Record<string, Attack>;

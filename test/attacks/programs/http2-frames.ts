import { once } from 'node:events';
import { connect } from 'node:net';
import { FrameType } from '../../../src/grpc/http2/frames/protocol';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import {
  REQUEST,
  block,
  continuation,
  data,
  fieldsOf,
  headers,
  hello,
  inserted,
  literal,
  ping,
  request,
  rstStream,
  settings,
  indexed,
} from '../../grpc/http2/frames';
import { RawClient } from '../../grpc/http2/raw-client';
import type { Answers, Attack, Target } from '../attack';
import { until } from '../../support/waiting/until';
import { concurrently, prefix, rawPeer, recordGoaway, statusName } from '../peers';

function times(count: number, make: (at: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, at) => make(at)));
}

function stream(at: number): number {
  return 2 * at + 1;
}

/** The headers of a call, without its message. */
function callHeaders(at: number, path = SHOULD_RATE_LIMIT): Buffer {
  return headers(stream(at), request(path, ['content-type', 'application/grpc'], ['te', 'trailers']));
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
  return headers(stream(at), Buffer.concat([block(REQUEST), value, Buffer.alloc(12_000, indexed(62))]), {
    endStream: true,
  });
}

/** Sends requests that are answered with headers only, and records the status of each. */
async function rejectedRequests(
  { target, answers, count }: { target: Target; answers: Answers; count: number },
  make: (at: number) => Buffer,
): Promise<void> {
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
}

function isHeaders({ type }: { readonly type: number }): boolean {
  return type === FrameType.HEADERS;
}

/** Opens streams with these frames, never ends their requests, and leaves when the service has read everything. */
async function unfinishedRequests(
  { target, answers, connections, streams }: { target: Target; answers: Answers; connections: number; streams: number },
  make: (at: number) => Buffer,
): Promise<void> {
  const peers = await Promise.all(Array.from({ length: connections }, () => rawPeer(target)));
  const bytes = times(streams, make);
  for (const peer of peers) {
    peer.send(bytes, ping('the end.'));
    await peer.until('everything to be read', () => peer.isEnded || peer.isAcknowledged('the end.'));
  }
  for (const peer of peers) {
    const { length } = peer.frames.filter(({ type }) => type === FrameType.RST_STREAM || type === FrameType.HEADERS);
    answers.add(peer.isEnded ? 'closed' : 'open', streams - length);
    peer.close();
  }
}

/** Opens connections and sends the beginning of something on each. */
async function silentConnections(target: Target, count: number): Promise<readonly RawClient[]> {
  const bytes = [
    Buffer.alloc(0),
    hello().subarray(0, 12),
    hello(),
    Buffer.concat([hello(), callHeaders(0).subarray(0, 20)]),
  ];
  const peers: RawClient[] = [];
  await concurrently(count, 100, async (at) => {
    const peer = new RawClient(connect(target.ports.grpc, '127.0.0.1'));
    peers.push(peer);
    await once(peer.socket, 'connect');
    peer.send(bytes[at % bytes.length]!);
  });
  return peers;
}

function leave(peers: readonly RawClient[], answers: Answers): void {
  for (const peer of peers) {
    answers.add(peer.isEnded ? 'closed' : 'open');
    peer.close();
  }
}

/** Frames of HTTP/2 that are valid one by one. */
export const HTTP2_FRAMES = {
  '10 connections, each with 20,000 calls that are reset at once': {
    run: flood(10, () => times(20_000, (at) => Buffer.concat([callHeaders(at), rstStream(stream(at))]))),
  },
  '100 connections, each with a header block in 10,000 CONTINUATION frames': {
    run: flood(100, () =>
      Buffer.concat([
        headers(1, block(REQUEST), { endHeaders: false }),
        times(10_000, () => continuation(1, literal(['a', 'b']))),
      ]),
    ),
  },
  '100 connections, each with 10,000 SETTINGS frames': { run: flood(100, () => times(10_000, () => settings([4, 1]))) },
  '100 connections, each with 10,000 PING frames': { run: flood(100, () => times(10_000, () => ping())) },
  '20 connections, each with a message in DATA frames of one byte': {
    run: flood(20, () => Buffer.concat([callHeaders(0), data(1, prefix(100_000)), times(50_000, () => data(1, 'x'))])),
  },
  '200 calls, each with 48 MB of headers in 12 KB': {
    run: (target, answers) => rejectedRequests({ target, answers, count: 200 }, headerBomb),
  },
  '20,000 calls of methods that do not exist, each with a new name': {
    run: (target, answers) =>
      rejectedRequests({ target, answers, count: 20_000 }, (at) =>
        headers(
          stream(at),
          request(`/no.such.Service/Method${at}`, ['content-type', 'application/grpc'], ['te', 'trailers']),
          { endStream: true },
        ),
      ),
  },
  '100 connections with 1,000 calls each, without their messages': {
    run: (target, answers) =>
      unfinishedRequests({ target, answers, connections: 100, streams: 1_000 }, (at) => callHeaders(at)),
  },
  '2,000 connections that send nothing, or stop inside a frame': {
    run: async (target, answers) => {
      const peers = await silentConnections(target, 2_000);
      // One in four has sent everything before its first request.
      await until('the service has answered', () => peers.filter(({ frames }) => frames.length > 0).length >= 500);
      leave(peers, answers);
    },
  },
  '500 connections where 200 are permitted': {
    settings: { GRPC_MAX_CONNECTIONS: '200' },
    run: async (target, answers) => {
      const peers = await silentConnections(target, 500);
      // The system accepts them before the service does.
      await until('a connection is closed', () => peers.some(({ isEnded }) => isEnded));
      leave(peers, answers);
    },
  },
} as const satisfies Record<string, Attack>;

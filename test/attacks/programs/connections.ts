import { readdirSync } from 'node:fs';
import { type Socket, connect } from 'node:net';
import { once } from 'node:events';
import { hello } from '../../grpc/http2/frames';
import { requestMessage } from '../../support/clients/grpc-client';
import { type Answers, type Attack, GrpcPeer, HttpPeer, type Target } from '../peers';

const HEALTH = 'GET /healthcheck HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n';
/**
 * After so many connections, new ones are used: fewer than the service has descriptors for, which closes the oldest of
 * more at once.
 */
const AT_ONCE = 40;
const WAVES = 3;

/** Calls on new connections of each listener, and compares the descriptors of the service with what it leaves free. */
async function probe(target: Target, openFiles: number, answers: Answers): Promise<void> {
  for (const port of [target.ports.http, target.ports.debug]) {
    using peer = new HttpPeer(port);
    await peer.send(HEALTH);
    await peer.answered;
    answers.add(peer.answer);
  }
  using client = new GrpcPeer(target, answers);
  await client.call(requestMessage('well-behaved', ['other=1']));
  const inUse = readdirSync(`/proc/${target.weir.pid}/fd`).length;
  if (inUse > openFiles - 64) answers.add(`${inUse} descriptors`);
}

/** Opens so many connections at once, several times, and uses new ones of all listeners meanwhile. */
function waves(
  { openFiles, count, bytes }: { openFiles: number; count: number; bytes: Buffer | undefined },
  ports: readonly ('grpc' | 'http' | 'debug')[],
): Attack['run'] {
  return async (target, answers) => {
    for (let wave = 0; wave < WAVES; wave += 1) {
      const sockets: Socket[] = [];
      while (sockets.length < count) {
        const opened = Array.from({ length: AT_ONCE }, async (_, at) => {
          const socket = connect(target.ports[ports[at % ports.length]!], '127.0.0.1').on('error', () => undefined);
          sockets.push(socket);
          if (bytes !== undefined) socket.write(bytes);
          await once(socket, 'connect').catch(() => undefined);
        });
        await Promise.all(opened);
        await probe(target, openFiles, answers);
      }
      for (let again = 0; again < 3; again += 1) await probe(target, openFiles, answers);
      for (const socket of sockets) socket.destroy();
    }
  };
}

const SILENT = { openFiles: 256, count: 400, bytes: undefined };
const IDLE_CLIENTS = { openFiles: 1_024, count: 1_300, bytes: hello() };

/** More connections than the service has file descriptors for. */
export const CONNECTIONS = {
  'waves of 400 connections that send nothing, with a limit of 256 open files': {
    openFiles: 256,
    run: waves(SILENT, ['http', 'grpc', 'debug']),
  },
  'waves of 400 connections that send nothing, with a limit of 256 open files and WORKERS=2': {
    openFiles: 256,
    settings: { WORKERS: '2' },
    run: waves(SILENT, ['http', 'grpc', 'debug']),
  },
  'waves of 1,300 idle gRPC clients, with a limit of 1,024 open files': {
    openFiles: 1_024,
    run: waves(IDLE_CLIENTS, ['grpc']),
  },
} as const satisfies Record<string, Attack>;

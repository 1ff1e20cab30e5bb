import { type Socket, createServer } from 'node:net';
import { LocalServer } from './local-server';

/** Bytes of no protocol, of the wrong one, or invalid bytes of the right one. */
const INVALID_BYTES = [
  Buffer.from([0, 1, 2, 3, 255, 254, 253, 252, 128, 10, 13, 0]),
  '*-7\r\n$99999999999\r\n+OK\r\n:1\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nand no more',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
  // HTTP/2: a SETTINGS frame, and then an invalid HEADERS frame on a stream that was not opened.
  Buffer.from('000000040000000000000004010400000063ffffffff', 'hex'),
  // HTTP/2: a frame that exceeds the maximum size.
  Buffer.from('ffffff000000000001', 'hex'),
];

/** A Unix socket has no reset; closing it with unread data has that effect. */
function reset(socket: Socket): void {
  void (socket.remoteAddress === undefined ? socket.destroy() : socket.resetAndDestroy());
}

type Behaviour = (socket: Socket) => void;

function later(act: () => void, turns = 1): void {
  void setTimeout(() => (turns === 1 ? act() : later(act, turns - 1)), 30).unref();
}

function onData(act: Behaviour): Behaviour {
  return (socket) => void socket.once('data', () => act(socket)).resume();
}

/** Used for the connections in turn. */
const BEHAVIOURS: readonly Behaviour[] = [
  reset,
  (socket) => socket.end(),
  (socket) => later(() => reset(socket)),
  onData(reset),
  (socket) => {
    socket.resume();
    later(() => reset(socket), 2);
  },
  onData((socket) => socket.end()),
  ...INVALID_BYTES.map((bytes): Behaviour => (socket) => {
    socket.write(bytes);
    later(() => socket.destroy());
  }),
  ...INVALID_BYTES.map((bytes): Behaviour => (socket) => {
    onData(() => socket.write(bytes))(socket);
    later(() => reset(socket), 2);
  }),
];

/** A server that violates every protocol, in another way on each connection. */
export class HostilePeer extends LocalServer {
  /** Connections after which every behaviour has occurred. */
  static readonly behaviourCount = BEHAVIOURS.length;

  /** @param first the index of the first behaviour, so that several peers differ */
  private constructor(first: number) {
    super(
      createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
        socket.on('error', () => undefined);
        BEHAVIOURS[(first + this.connections) % BEHAVIOURS.length]?.(socket);
      }),
    );
  }

  /** @param path of a Unix socket; a free port of 127.0.0.1 if undefined */
  static start(first = 0, path?: string): Promise<HostilePeer> {
    return new HostilePeer(first).listen(path);
  }

  get connections(): number {
    return this.accepted;
  }
}

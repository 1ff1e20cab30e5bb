import { once } from 'node:events';
import { type Server, type Socket, createServer } from 'node:net';

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

function later(act: () => void): void {
  void setTimeout(act, 30).unref();
}

/** Used for the connections in turn. */
const BEHAVIOURS: readonly Behaviour[] = [
  (socket) => reset(socket),
  (socket) => socket.end(),
  (socket) => later(() => reset(socket)),
  (socket) => {
    socket.once('data', () => reset(socket)).resume();
  },
  (socket) => {
    socket.resume();
    later(() => later(() => reset(socket)));
  },
  (socket) => {
    socket.once('data', () => socket.end()).resume();
  },
  ...INVALID_BYTES.map((bytes): Behaviour => (socket) => {
    socket.write(bytes);
    later(() => socket.destroy());
  }),
  ...INVALID_BYTES.map((bytes): Behaviour => (socket) => {
    socket.once('data', () => socket.write(bytes)).resume();
    later(() => later(() => reset(socket)));
  }),
];

/** A server that violates every protocol, in another way on each connection. */
export class HostilePeer implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  connections = 0;

  /** @param first the index of the first behaviour, so that several peers differ */
  private constructor(first: number) {
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      this.#sockets.add(socket.on('error', () => undefined));
      socket.once('close', () => this.#sockets.delete(socket));
      const behaviour = BEHAVIOURS[(first + this.connections) % BEHAVIOURS.length];
      this.connections += 1;
      behaviour?.(socket);
    });
  }

  /** @param path of a Unix socket; a free port of 127.0.0.1 if undefined */
  static async start(first = 0, path?: string): Promise<HostilePeer> {
    const peer = new HostilePeer(first);
    if (path === undefined) peer.#server.listen(0, '127.0.0.1');
    else peer.#server.listen(path);
    await once(peer.#server, 'listening');
    return peer;
  }

  /** Connections after which every behaviour has occurred. */
  static get behaviourCount(): number {
    return BEHAVIOURS.length;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the peer has no port');
    return address.port;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

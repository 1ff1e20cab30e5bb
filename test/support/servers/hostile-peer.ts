import { once } from 'node:events';
import { type Server, type Socket, createServer } from 'node:net';

/** Bytes that belong to no protocol, to the wrong one, or to the right one and make no sense. */
const NONSENSE = [
  Buffer.from([0, 1, 2, 3, 255, 254, 253, 252, 128, 10, 13, 0]),
  '*-7\r\n$99999999999\r\n+OK\r\n:1\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nand no more',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
  // HTTP/2: its settings, and then a frame of headers that are none, on a stream that nobody opened.
  Buffer.from('000000040000000000000004010400000063ffffffff', 'hex'),
  // HTTP/2: a frame that is longer than anybody allowed.
  Buffer.from('ffffff000000000001', 'hex'),
];

/** A Unix socket has no reset of its own: what was not read makes one of its end. */
function reset(socket: Socket): void {
  void (socket.remoteAddress === undefined ? socket.destroy() : socket.resetAndDestroy());
}

type Behaviour = (socket: Socket) => void;

function soon(act: () => void): void {
  void setTimeout(act, 30).unref();
}

/** What it does with one connection after the other. */
const BEHAVIOURS: readonly Behaviour[] = [
  (socket) => reset(socket),
  (socket) => socket.end(),
  (socket) => soon(() => reset(socket)),
  (socket) => {
    socket.once('data', () => reset(socket)).resume();
  },
  (socket) => {
    socket.resume();
    soon(() => soon(() => reset(socket)));
  },
  (socket) => {
    socket.once('data', () => socket.end()).resume();
  },
  ...NONSENSE.map((bytes): Behaviour => (socket) => {
    socket.write(bytes);
    soon(() => socket.destroy());
  }),
  ...NONSENSE.map((bytes): Behaviour => (socket) => {
    socket.once('data', () => socket.write(bytes)).resume();
    soon(() => soon(() => reset(socket)));
  }),
];

/** Somebody who listens where the service looks for a server, and does everything wrong: another thing on each connection. */
export class HostilePeer implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  connections = 0;

  /** @param first what it begins with, so that several do not all do the same */
  private constructor(first: number) {
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      this.#sockets.add(socket.on('error', () => undefined));
      socket.once('close', () => this.#sockets.delete(socket));
      const behaviour = BEHAVIOURS[(first + this.connections) % BEHAVIOURS.length];
      this.connections += 1;
      behaviour?.(socket);
    });
  }

  /** @param at the path of a socket; a port of 127.0.0.1 when not given */
  static async start(first = 0, at?: string): Promise<HostilePeer> {
    const peer = new HostilePeer(first);
    if (at === undefined) peer.#server.listen(0, '127.0.0.1');
    else peer.#server.listen(at);
    await once(peer.#server, 'listening');
    return peer;
  }

  static get repertoire(): number {
    return BEHAVIOURS.length;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('it has no port');
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

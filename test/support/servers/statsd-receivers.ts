import { type Socket as UdpSocket, createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type Server, type Socket, createServer } from 'node:net';

const PATIENCE = 15_000;

/** What a statsd daemon does with its lines: takes them in, whole ones only. */
export class Lines {
  readonly lines: string[] = [];
  readonly #waiting = new Set<() => void>();

  take(lines: readonly string[]): void {
    this.lines.push(...lines);
    for (const look of this.#waiting) look();
  }

  /** The sum of a counter over all lines. */
  sum(name: string): number {
    let sum = 0;
    for (const line of this.lines) {
      if (line.startsWith(`${name}:`) && line.includes('|c')) sum += Number.parseFloat(line.slice(name.length + 1));
    }
    return sum;
  }

  /** Waits until there is what is asked for; fails with what there is instead. */
  until(what: string, isThere: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error(`waited in vain for ${what}; there is:\n${this.lines.slice(-50).join('\n')}`));
      }, PATIENCE);
      const look = (): void => {
        if (!isThere()) return;
        clearTimeout(late);
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }
}

/** A statsd daemon on TCP, on a port that the system picks or one that it had before. */
export class TcpReceiver extends Lines implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  connections = 0;
  /** Bytes behind the last newline. */
  #rest = '';

  private constructor(reads: boolean) {
    super();
    this.#server = createServer({ pauseOnConnect: !reads }, (socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      socket.on('error', () => {});
      if (!reads) return;
      this.#rest = '';
      socket.setEncoding('utf8').on('data', (text: string) => {
        const lines = (this.#rest + text).split('\n');
        this.#rest = lines.pop() ?? '';
        this.take(lines);
      });
    });
  }

  /** @param reads false: takes connections and never reads from them */
  static async start({ port = 0, reads = true } = {}): Promise<TcpReceiver> {
    const receiver = new TcpReceiver(reads);
    receiver.#server.listen(port, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get port(): number {
    return portOf(this.#server.address());
  }

  /** Cuts the connections there are, and goes on listening. */
  async cut(): Promise<void> {
    const gone = [...this.#sockets].map((socket) => once(socket, 'close'));
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await Promise.all(gone);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** A statsd daemon on UDP. */
export class UdpReceiver extends Lines implements AsyncDisposable {
  readonly #socket: UdpSocket;
  readonly datagrams: string[] = [];

  private constructor(socket: UdpSocket) {
    super();
    this.#socket = socket;
    socket.on('message', (message) => {
      this.datagrams.push(message.toString());
      this.take(message.toString().split('\n'));
    });
  }

  static async start({ port = 0 } = {}): Promise<UdpReceiver> {
    const socket = createSocket('udp4').bind(port, '127.0.0.1');
    await once(socket, 'listening');
    return new UdpReceiver(socket);
  }

  get port(): number {
    return this.#socket.address().port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, 'close');
  }
}

function portOf(address: ReturnType<Server['address']>): number {
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

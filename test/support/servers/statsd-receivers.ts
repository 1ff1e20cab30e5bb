import { type Socket as UdpSocket, createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type Server, type Socket, createServer } from 'node:net';

const TIMEOUT = 60_000;

/** The complete lines that a statsd receiver has received. */
export class Lines {
  readonly lines: string[] = [];
  readonly #checks = new Set<() => void>();

  add(lines: readonly string[]): void {
    this.lines.push(...lines);
    for (const check of this.#checks) check();
  }

  /** The sum of a counter over all lines. */
  sum(name: string): number {
    let sum = 0;
    for (const line of this.lines) {
      if (line.startsWith(`${name}:`) && line.includes('|c')) sum += Number.parseFloat(line.slice(name.length + 1));
    }
    return sum;
  }

  /** Waits for a condition; rejects with the last lines when it times out. */
  until(what: string, isMet: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#checks.delete(check);
        reject(new Error(`timed out waiting for ${what}; received:\n${this.lines.slice(-50).join('\n')}`));
      }, TIMEOUT);
      const check = (): void => {
        if (!isMet()) return;
        clearTimeout(timer);
        this.#checks.delete(check);
        resolve();
      };
      this.#checks.add(check);
      check();
    });
  }
}

/** A statsd receiver on TCP. */
export class TcpReceiver extends Lines implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  connections = 0;
  /** The text after the last newline. */
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
        this.add(lines);
      });
    });
  }

  /** @param port chosen by the system if 0 @param reads false: accepts connections and never reads from them */
  static async start({ port = 0, reads = true } = {}): Promise<TcpReceiver> {
    const receiver = new TcpReceiver(reads);
    receiver.#server.listen(port, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get port(): number {
    return portOf(this.#server.address());
  }

  /** Resets the open connections, and keeps listening. */
  async resetConnections(): Promise<void> {
    const closed = [...this.#sockets].map((socket) => once(socket, 'close'));
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await Promise.all(closed);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** A statsd receiver on UDP. */
export class UdpReceiver extends Lines implements AsyncDisposable {
  readonly #socket: UdpSocket;
  readonly datagrams: string[] = [];

  private constructor(socket: UdpSocket) {
    super();
    this.#socket = socket;
    socket.on('message', (message) => {
      this.datagrams.push(message.toString());
      this.add(message.toString().split('\n'));
    });
  }

  static async start({ port = 0, host = '127.0.0.1' } = {}): Promise<UdpReceiver> {
    // What arrives while the process waits for a busy machine is kept.
    const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1_024 * 1_024 }).bind(port, host);
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

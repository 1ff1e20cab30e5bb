import { type Socket as UdpSocket, createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { until } from '../waiting/until';
import { LocalServer } from './local-server';

/** The complete lines that a statsd receiver has received. */
export class Lines {
  readonly lines: string[] = [];

  /** The sum of a counter over all lines. */
  sum(name: string): number {
    const counted = this.lines.filter((line) => line.startsWith(`${name}:`) && line.includes('|c'));
    return counted.reduce((sum, line) => sum + Number.parseFloat(line.slice(name.length + 1)), 0);
  }

  /** Waits for a condition; rejects with the last lines when it times out. */
  async until(what: string, isMet: () => boolean): Promise<void> {
    try {
      await until(what, isMet);
    } catch (error) {
      throw new Error(`${String(error)}; received:\n${this.lines.slice(-50).join('\n')}`, { cause: error });
    }
  }
}

export interface StreamOptions {
  /** Lines, or packets with a prefix of their length as the Datadog agent reads. */
  readonly framing?: 'lines' | 'packets';
  /** False: accepts connections and never reads from them. */
  readonly reads?: boolean;
}

/** A statsd receiver on a socket with connections. */
export abstract class StreamReceiver extends Lines implements AsyncDisposable {
  /** Complete packets, or lines, in the order of arrival. */
  readonly packets: Buffer[] = [];
  protected readonly server: LocalServer;

  protected constructor({ framing = 'lines', reads = true }: StreamOptions) {
    super();
    const read = framing === 'packets' ? readPacket : readLine;
    const server = createServer({ pauseOnConnect: !reads }, (socket) => {
      if (!reads) return;
      let rest = Buffer.alloc(0);
      socket.on('data', (chunk: Buffer) => {
        rest = Buffer.concat([rest, chunk]);
        for (let frame = read(rest); frame !== undefined; frame = read(rest)) {
          rest = rest.subarray(frame.length);
          this.packets.push(frame.packet);
          this.lines.push(...frame.packet.toString().split('\n'));
        }
      });
    });
    this.server = new LocalServer(server);
  }

  get connections(): number {
    return this.server.accepted;
  }

  /** Stops like a daemon: closes its connections, and removes its socket if it is a file. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.server[Symbol.asyncDispose]();
  }
}

/** A statsd receiver on TCP. */
export class TcpReceiver extends StreamReceiver {
  /** @param port chosen by the system if 0 */
  static async start({ port = 0, ...options }: StreamOptions & { port?: number } = {}): Promise<TcpReceiver> {
    const receiver = new TcpReceiver(options);
    await receiver.server.listen(port);
    return receiver;
  }

  get port(): number {
    return this.server.port;
  }

  /** Resets the open connections, and keeps listening. */
  async resetConnections(): Promise<void> {
    const closed = [...this.server.sockets].map((socket) => once(socket.resetAndDestroy(), 'close'));
    await Promise.all(closed);
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
      this.lines.push(...message.toString().split('\n'));
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

interface Frame {
  readonly packet: Buffer;
  /** Bytes of the packet with its framing. */
  readonly length: number;
}

function readPacket(bytes: Buffer): Frame | undefined {
  if (bytes.length < 4) return undefined;
  const length = 4 + bytes.readUInt32LE(0);
  return bytes.length < length ? undefined : { packet: Buffer.from(bytes.subarray(4, length)), length };
}

function readLine(bytes: Buffer): Frame | undefined {
  const end = bytes.indexOf('\n');
  return end < 0 ? undefined : { packet: Buffer.from(bytes.subarray(0, end)), length: end + 1 };
}

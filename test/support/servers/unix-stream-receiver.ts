import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type Server, type Socket, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Lines } from './statsd-receivers';

/** A folder for a socket, which outlives the receivers that listen on it. */
export class SocketFolder implements AsyncDisposable {
  readonly #folder: string;
  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async make(): Promise<SocketFolder> {
    return new SocketFolder(await mkdtemp(join(tmpdir(), 'weir-statistics-')));
  }

  get path(): string {
    return join(this.#folder, 'dsd.socket');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

interface UnixReceiverOptions {
  readonly framing?: 'lines' | 'packets';
  /** False: accepts connections and never reads from them. */
  readonly reads?: boolean;
}

/** A receiver on a Unix stream socket that reads lines, or length-prefixed packets as the Datadog agent does. */
export class UnixReceiver extends Lines implements AsyncDisposable {
  /** Complete packets, or lines, in the order of arrival. */
  readonly packets: Buffer[] = [];
  connections = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor({ framing = 'packets', reads = true }: UnixReceiverOptions) {
    super();
    const read = framing === 'packets' ? readPacket : readLine;
    this.#server = createServer({ pauseOnConnect: !reads }, (socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      socket.on('error', () => {});
      if (!reads) return;
      let rest = Buffer.alloc(0);
      socket.on('data', (chunk: Buffer) => {
        rest = Buffer.concat([rest, chunk]);
        for (let frame = read(rest); frame !== undefined; frame = read(rest)) {
          rest = rest.subarray(frame.length);
          this.packets.push(frame.packet);
          this.add(frame.packet.toString().split('\n'));
        }
      });
    });
  }

  static async start(path: string, options: UnixReceiverOptions = {}): Promise<UnixReceiver> {
    const receiver = new UnixReceiver(options);
    receiver.#server.listen(path);
    await once(receiver.#server, 'listening');
    return receiver;
  }

  /** Stops like a daemon: closes its connections and removes its socket. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
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

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type Server, type Socket, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Lines } from './statsd-receivers';

/** A folder for a socket, which outlives the daemons that listen on it. */
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
  /** False: takes connections and never reads from them. */
  readonly reads?: boolean;
}

/** A daemon on a stream socket: one that reads lines, or one that reads packets behind their lengths as the Datadog agent. */
export class UnixReceiver extends Lines implements AsyncDisposable {
  /** Whole ones, as they came. */
  readonly packets: Buffer[] = [];
  connections = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor({ framing = 'packets', reads = true }: UnixReceiverOptions) {
    super();
    const cut = framing === 'packets' ? cutPacket : cutLine;
    this.#server = createServer({ pauseOnConnect: !reads }, (socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      socket.on('error', () => {});
      if (!reads) return;
      let rest = Buffer.alloc(0);
      socket.on('data', (chunk: Buffer) => {
        rest = Buffer.concat([rest, chunk]);
        for (let found = cut(rest); found !== undefined; found = cut(rest)) {
          rest = rest.subarray(found.taken);
          this.packets.push(found.packet);
          this.take(found.packet.toString().split('\n'));
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

  /** Ends as a daemon does: its connections are closed, its socket is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

interface Cut {
  readonly packet: Buffer;
  /** Bytes it took with what is around it. */
  readonly taken: number;
}

function cutPacket(bytes: Buffer): Cut | undefined {
  if (bytes.length < 4) return undefined;
  const taken = 4 + bytes.readUInt32LE(0);
  return bytes.length < taken ? undefined : { packet: Buffer.from(bytes.subarray(4, taken)), taken };
}

function cutLine(bytes: Buffer): Cut | undefined {
  const end = bytes.indexOf('\n');
  return end < 0 ? undefined : { packet: Buffer.from(bytes.subarray(0, end)), taken: end + 1 };
}

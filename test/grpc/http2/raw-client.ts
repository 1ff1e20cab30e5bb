import net from 'node:net';
import tls from 'node:tls';
import { FrameType } from '../../../src/grpc/http2/frames/protocol';
import { type Frame, parseFrames } from './frames';

const PATIENCE_MS = 20_000;

/** A client on a real socket that writes what it is told and keeps what comes. */
export class RawClient {
  readonly frames: Frame[] = [];
  /** The server has ended its half, or the socket is gone. */
  isEnded = false;
  isClosed = false;
  #rest = Buffer.alloc(0);
  readonly #waiting = new Set<() => void>();

  constructor(readonly socket: net.Socket) {
    socket.on('data', (chunk: Buffer) => {
      const { frames, rest } = parseFrames(Buffer.concat([this.#rest, chunk]));
      this.#rest = Buffer.from(rest);
      this.frames.push(...frames);
      this.#look();
    });
    socket.on('end', () => {
      this.isEnded = true;
      this.#look();
    });
    socket.on('close', () => {
      this.isEnded = true;
      this.isClosed = true;
      this.#look();
    });
    // What a test expects of the end, it says itself.
    socket.on('error', () => {});
  }

  send(...bytes: Buffer[]): this {
    this.socket.write(Buffer.concat(bytes));
    return this;
  }

  /** Waits until something holds; fails, naming it, when it never does. */
  async until(what: string, holds: () => boolean): Promise<this> {
    if (holds()) return this;
    await new Promise<void>((resolve, reject) => {
      const check = (): void => {
        if (!holds()) return;
        clearTimeout(timer);
        this.#waiting.delete(check);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(check);
        reject(
          new Error(
            `never came: ${what}; seen: ${JSON.stringify(this.frames.map(({ type, stream }) => [type, stream]))}`,
          ),
        );
      }, PATIENCE_MS);
      this.#waiting.add(check);
    });
    return this;
  }

  /** Whether a PING with these bytes has been acknowledged. */
  heard(opaque: string): boolean {
    return this.frames.some(({ type, payload }) => type === FrameType.PING && payload.toString('latin1') === opaque);
  }

  close(): void {
    this.socket.destroy();
  }

  #look(): void {
    for (const check of this.#waiting) check();
  }
}

/** Waits until something holds that nobody tells us of; fails, naming it, when it never does. */
export async function eventually(what: string, holds: () => boolean): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; !holds();) {
    if (Date.now() > end) throw new Error(`never came: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

type Address = net.AddressInfo | string;

export function connectPlain(address: Address): RawClient {
  return new RawClient(
    typeof address === 'string'
      ? net.connect(address)
      : net.connect({ port: address.port, host: '127.0.0.1', noDelay: true }),
  );
}

/** Over TLS to `localhost`; the socket is secure when what was sent arrives. */
export function connectTls(address: Address, options: tls.ConnectionOptions): RawClient {
  return new RawClient(
    tls.connect({
      ...(typeof address === 'string' ? { path: address } : { port: address.port, host: '127.0.0.1' }),
      servername: 'localhost',
      ALPNProtocols: ['h2'],
      ...options,
    }),
  );
}

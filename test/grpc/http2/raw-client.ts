import { EventEmitter, once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { FrameType } from '../../../src/grpc/http2/protocol';
import { type Frame, parseFrames } from './frames';

const TIMEOUT_MS = 60_000;

/** A client on a real socket that sends any bytes and records the frames that it receives. */
export class RawClient {
  readonly frames: Frame[] = [];
  /** The server has ended its side, or the socket is closed. */
  isEnded = false;
  isClosed = false;
  #rest = Buffer.alloc(0);
  readonly #events = new EventEmitter().setMaxListeners(0);

  constructor(readonly socket: net.Socket) {
    socket.on('data', (chunk: Buffer) => {
      const { frames, rest } = parseFrames(Buffer.concat([this.#rest, chunk]));
      this.#rest = Buffer.from(rest);
      this.frames.push(...frames);
      this.#events.emit('change');
    });
    for (const event of ['end', 'close']) {
      socket.on(event, () => {
        this.isEnded = true;
        this.isClosed ||= event === 'close';
        this.#events.emit('change');
      });
    }
    // Tests check the end of a connection themselves.
    socket.on('error', () => {});
  }

  send(...bytes: Buffer[]): this {
    this.socket.write(Buffer.concat(bytes));
    return this;
  }

  /** Waits for a condition. Fails with its description if it is not met in time. */
  async until(what: string, holds: () => boolean): Promise<this> {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    while (!holds()) {
      await once(this.#events, 'change', { signal }).catch((cause: unknown) => {
        const received = JSON.stringify(this.frames.map(({ type, stream }) => [type, stream]));
        throw new Error(`timed out waiting for ${what}; received: ${received}`, { cause });
      });
    }
    return this;
  }

  /** Whether a PING with these bytes has been acknowledged. */
  isAcknowledged(opaque: string): boolean {
    return this.frames.some(({ type, payload }) => type === FrameType.PING && payload.toString('latin1') === opaque);
  }

  close(): void {
    this.socket.destroy();
  }
}

type Address = net.AddressInfo | string;

export function connectPlain(address: Address): RawClient {
  const at = typeof address === 'string' ? { path: address } : { port: address.port, host: '127.0.0.1' };
  return new RawClient(net.connect({ ...at, noDelay: true }));
}

/** A TLS client of `localhost`. Bytes may be sent before the handshake has finished. */
export function connectTls(address: Address, options: tls.ConnectionOptions): RawClient {
  const { port } = address as net.AddressInfo;
  const peer = { port, host: '127.0.0.1', servername: 'localhost', ALPNProtocols: ['h2'] };
  return new RawClient(tls.connect({ ...peer, ...options }));
}

import net from 'node:net';
import type { Duplex } from 'node:stream';

/** As large as Node's own buffers for reading. */
const BUFFER_BYTES = 65_536;

/** What every connection of this process is read into, one after the other. */
const buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);

/** A socket and the reader of its bytes, which need not pass through a stream. */
export class DirectSocket<S extends Duplex = Duplex> {
  /** Takes the place of the socket that was taken over, and may be the same. */
  readonly socket: S;
  /** Called with each chunk, which belongs to the callee. */
  onChunk: (chunk: Buffer) => void;

  /**
   * Takes over a socket from which nothing was read, and reads it into one buffer for all: a stream costs a buffer of
   * 64 KiB and a queue for every read, a seventh of the CPU time of a service with a few thousand calls per second.
   * `onread` is public only for sockets that connect, so the handle is passed on by fields of Node that are not
   * documented; where they are missing, the socket is read as a stream.
   */
  constructor(accepted: S, onChunk: (chunk: Buffer) => void = () => undefined) {
    this.onChunk = onChunk;
    const { _handle: handle } = accepted as InnerSocket;
    if (typeof handle?.useUserBuffer !== 'function' || accepted.readableLength > 0) {
      this.socket = accepted.on('data', (chunk: Buffer) => this.onChunk(chunk)).resume();
      return;
    }
    Object.assign(accepted, { _handle: null });
    const direct = new net.Socket({ handle, onread: { buffer, callback: this.#read.bind(this) } } as SocketOptions);
    // Only sockets of Node have a handle.
    this.socket = direct as Duplex as S;
    // A worker reports the end of the socket that it has received, and a child process has ended when its pipes have.
    if (accepted.listenerCount('close') > 0) this.socket.once('close', () => accepted.destroy());
    else accepted.destroy();
  }

  #read(length: number): boolean {
    this.onChunk(Buffer.from(buffer.subarray(0, length)));
    return true;
  }
}

interface InnerSocket {
  readonly _handle?: { readonly useUserBuffer?: unknown } | null;
}

type SocketOptions = net.SocketConstructorOpts & { readonly handle: object };

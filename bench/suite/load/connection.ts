import type { Socket } from 'node:net';

/** The codes of a RateLimitResponse. */
export const OK = 1;
export const OVER_LIMIT = 2;

/** Where a connection leads. */
export interface Target {
  readonly host: string;
  readonly port: number;
  /** The certificate of the authority of the server, in PEM, for TLS. */
  readonly ca?: string;
  /** How gRPC calls begin; see `PROFILES` in frames.cjs. */
  readonly headers?: 'envoy' | 'envoy, 50 ms' | 'deadline';
}

/** Writes the message of a call. All messages of one source have the same length. */
export interface Messages {
  readonly length: number;
  /** Writes the message of the call with this number, and returns the position after it. */
  write(number: number, bytes: Buffer, at: number): number;
}

/** What becomes of the calls of a connection. Times are those of `performance.now()`. */
export interface CallListener {
  /** @param code `overall_code` of the response @param now when the response arrived */
  answered(connection: Connection, number: number, due: number, code: number, now: number): void;
  /** The call got an error, or its connection ended. */
  failed(number: number, due: number): void;
  /** The server has reported that it does not process the call: it can be sent again on another connection. */
  returned(number: number, due: number): void;
  /** The connection has ended. */
  closed(connection: Connection): void;
  /** Receives each response, which is in `bytes` from `start` to `end`, before {@link answered}. */
  readonly onResponse?: ((number: number, bytes: Buffer, start: number, end: number) => void) | undefined;
}

/** A connection of the load generator, on which calls are sent as they are due. */
export interface Connection {
  /** Whether it takes calls. */
  readonly isUsable: boolean;
  /** Calls without a response, and those that wait for a slot on the connection. */
  readonly outstanding: number;
  /** Resolves when it is open, rejects when it cannot be opened. */
  readonly opened: Promise<void>;
  /** Adds a call to what {@link flush} writes. */
  call(number: number, due: number): void;
  flush(): void;
  /** Takes no further calls, and closes when all have been answered. */
  end(): void;
  destroy(): void;
}

const SLAB_BYTES = 262_144;

/** Gathers what is written to a socket in one turn. */
export class Output {
  readonly #socket: Socket;
  #slab = Buffer.allocUnsafe(SLAB_BYTES);
  #start = 0;
  #end = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** The buffer that the last {@link reserve} refers to. */
  get bytes(): Buffer {
    return this.#slab;
  }

  /** Returns the position in {@link bytes} at which the caller has to write this many bytes. */
  reserve(length: number): number {
    if (this.#end + length > SLAB_BYTES) {
      this.flush();
      // The socket may still hold the written bytes.
      this.#slab = Buffer.allocUnsafe(SLAB_BYTES);
      this.#start = 0;
      this.#end = 0;
    }
    const at = this.#end;
    this.#end += length;
    return at;
  }

  flush(): void {
    if (this.#end === this.#start) return;
    const bytes = this.#slab.subarray(this.#start, this.#end);
    this.#start = this.#end;
    if (this.#socket.writable) this.#socket.write(bytes);
  }
}

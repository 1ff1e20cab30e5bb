import { isUtf8 } from 'node:buffer';
import { BodyRejected, CallerDisconnected, type Exchange, MalformedBody, type Rejection } from './errors';
import type { OnHttpRejected } from './limits';

/** Limits of bodies, in bytes. */
export interface BodyLimits {
  readonly maxBytes: number;
  /**
   * A shorter piece of a body falls short of this… Each piece is an event, however small it is. Chunks of one byte cost
   * 0.23 µs of CPU time for each byte that is sent, with their framing; requests for /healthcheck 1.1 µs, for /json
   * 0.30 µs.
   */
  readonly smallPieceBytes: number;
  /** …and all pieces of a body may fall short by this much. */
  readonly maxShortfallBytes: number;
  /** Memory of the unfinished bodies of all connections; at least that of one body. */
  readonly maxUnfinishedBytes: number;
}

const KIB = 1_024;
const MIB = 1_024 * KIB;

/** Small pieces have the limits of small DATA frames on the gRPC listener. */
const BODY_LIMITS: BodyLimits = {
  maxBytes: MIB,
  smallPieceBytes: 256,
  maxShortfallBytes: 256 * KIB,
  maxUnfinishedBytes: 64 * MIB,
};

const TOO_LARGE: Rejection = {
  status: 413,
  code: 'body_too_large',
  message: 'the request body is larger than 1 MiB',
};
const SMALL_PIECES: Rejection = {
  kind: 'data_dribble',
  status: 400,
  code: 'body_in_small_pieces',
  message: 'the request body arrives in too many small pieces',
  // The rest of such a body is not worth receiving.
  lingerMs: 0,
};
const OUT_OF_MEMORY: Rejection = {
  kind: 'request_memory',
  status: 503,
  code: 'out_of_memory',
  message: 'the unfinished bodies of all requests take too much memory',
  headers: { 'Retry-After': '1' },
};

/** Receives a body, or why there is none: exactly one of these is called, once. */
export interface BodyReader {
  complete(body: Buffer): void;
  /** The rest of the body is still to be received and discarded. */
  rejected(rejection: Rejection): void;
  /** The connection was closed before the end of the body. */
  disconnected(): void;
}

/** @throws {MalformedBody} when it is not UTF-8 */
export function textOf(body: Buffer): string {
  if (!isUtf8(body)) throw new MalformedBody('$: the body is not valid UTF-8');
  return body.toString();
}

/**
 * Receives the body of a request. A rejected body is not read further: not at all if its announced length is too large.
 * The reader is called back, because a Promise per request would take longer than the request.
 */
export function receiveBody({ req, res }: Exchange, memory: BodyMemory, reader: BodyReader): void {
  if (Number(req.headers['content-length']) > memory.limits.maxBytes) {
    reader.rejected(TOO_LARGE);
    return;
  }
  if (req.headers.expect !== undefined) res.writeContinue();

  const body = new GrowingBody(memory, () => fail(OUT_OF_MEMORY));
  let isDone = false;
  function fail(rejection: Rejection) {
    isDone = true;
    req.off('data', onData).pause();
    body.discard();
    if (rejection.kind !== undefined) memory.onRejected(rejection.kind, req.socket, rejection.message);
    reader.rejected(rejection);
  }
  function onData(piece: Buffer) {
    const rejection = body.add(piece, req.complete);
    if (rejection !== undefined) fail(rejection);
  }
  req.on('data', onData);
  req.on('end', () => {
    if (isDone) return;
    isDone = true;
    reader.complete(body.take());
  });
  // Also emitted when the connection is lost after the end of the body.
  req.on('error', () => {
    if (isDone) return;
    isDone = true;
    body.discard();
    reader.disconnected();
  });
}

/**
 * The body of a request as text. Rejects with {@link MalformedBody} when it is none, {@link BodyRejected} or
 * {@link CallerDisconnected}.
 */
export function receiveText(exchange: Exchange, memory: BodyMemory): Promise<string> {
  return new Promise<Buffer>((resolve, reject) => {
    receiveBody(exchange, memory, {
      complete: resolve,
      rejected: (rejection) => reject(new BodyRejected(rejection)),
      disconnected: () => reject(new CallerDisconnected('the body is incomplete')),
    });
  }).then(textOf);
}

/** The share of the memory that is released at once when there is no more, so that bodies to end are rarely sought. */
const RELEASED_SHARE = 1 / 8;

/**
 * The memory for unfinished bodies of all connections. When it is used up, the bodies that use the most of it for the
 * longest time (bytes × milliseconds) are ended. So a body that is small or arrives quickly is received, however many
 * others are left unfinished. Addresses are not considered: all callers behind a proxy have the same one.
 */
export class BodyMemory {
  readonly limits: BodyLimits;
  /** Called for each body that is rejected, except one that is only too large. */
  readonly onRejected: OnHttpRejected;
  readonly #bodies = new Set<GrowingBody>();
  #reserved = 0;

  /** @param limits those that differ from {@link BODY_LIMITS} */
  constructor(limits: Partial<BodyLimits>, onRejected: OnHttpRejected = () => undefined) {
    this.limits = { ...BODY_LIMITS, ...limits };
    this.onRejected = onRejected;
  }

  /** Reserves further bytes for a body. Bodies are ended if necessary; this one never. */
  reserve(body: GrowingBody, bytes: number): void {
    const { maxUnfinishedBytes } = this.limits;
    const now = performance.now();
    if (this.#reserved + bytes > maxUnfinishedBytes) {
      this.#endBodies(maxUnfinishedBytes * (1 - RELEASED_SHARE) - bytes, body, now);
    }
    if (body.reserved === 0) {
      body.since = now;
      this.#bodies.add(body);
    }
    body.reserved += bytes;
    this.#reserved += bytes;
  }

  /** The body is complete or was given up. Can be called again. */
  release(body: GrowingBody): void {
    if (body.reserved === 0) return;
    this.#bodies.delete(body);
    this.#reserved -= body.reserved;
    body.reserved = 0;
  }

  /** Ends bodies until only so many bytes are reserved. */
  #endBodies(bytes: number, except: GrowingBody, now: number): void {
    function cost({ reserved, since }: GrowingBody): number {
      return reserved * (now - since);
    }
    const byCost = [...this.#bodies].sort((one, other) => cost(other) - cost(one));
    for (const body of byCost) {
      if (this.#reserved <= bytes) return;
      if (body === except) continue;
      this.release(body);
      body.end();
    }
  }
}

const EMPTY = Buffer.alloc(0);
const FIRST_CAPACITY_BYTES = 4 * KIB;
/** What Node and V8 use for a piece that is kept as it arrived, in addition to its bytes. */
const PIECE_OVERHEAD_BYTES = 256;

/** The part of a body that has arrived. A body in one piece, the usual case, is not copied. */
class GrowingBody {
  /**
   * When its first bytes were reserved, in milliseconds of `performance.now()`; set, as `reserved`, only by
   * {@link BodyMemory}.
   */
  since = 0;
  /** Bytes that are reserved for it. */
  reserved = 0;
  /** Called when the body is ended for lack of memory, of which it has none any more. */
  readonly end: () => void;
  readonly #memory: BodyMemory;
  #buffer: Buffer = EMPTY;
  #size = 0;
  #shortfall = 0;

  constructor(memory: BodyMemory, end: () => void) {
    this.#memory = memory;
    this.end = end;
  }

  /**
   * Returns why the body is rejected, if it is.
   *
   * @param isComplete whether the whole body has arrived, though perhaps not yet here; then no memory needs to be
   * reserved
   */
  add(piece: Buffer, isComplete: boolean): Rejection | undefined {
    const { maxBytes, smallPieceBytes, maxShortfallBytes } = this.#memory.limits;
    const size = this.#size + piece.length;
    if (size > maxBytes) return TOO_LARGE;
    if (piece.length < smallPieceBytes) this.#shortfall += smallPieceBytes - piece.length;
    if (this.#shortfall > maxShortfallBytes) return SMALL_PIECES;
    if (this.#size === 0) {
      this.#buffer = piece;
      if (!isComplete) this.#memory.reserve(this, piece.length + PIECE_OVERHEAD_BYTES);
    } else {
      if (size > this.#buffer.length) this.#grow(size, isComplete);
      piece.copy(this.#buffer, this.#size);
    }
    this.#size = size;
    return undefined;
  }

  /** Returns the bytes and releases their memory. */
  take(): Buffer {
    const bytes = this.#buffer.subarray(0, this.#size);
    this.discard();
    return bytes;
  }

  /** The connection refers to the body until it is closed, which may take some time. */
  discard(): void {
    this.#memory.release(this);
    this.#buffer = EMPTY;
  }

  #grow(size: number, isComplete: boolean): void {
    const { maxBytes } = this.#memory.limits;
    const capacity = Math.min(Math.max(FIRST_CAPACITY_BYTES, 2 * size), maxBytes);
    if (!isComplete) this.#memory.reserve(this, capacity - this.#buffer.length);
    const buffer = Buffer.allocUnsafeSlow(capacity);
    this.#buffer.copy(buffer, 0, 0, this.#size);
    this.#buffer = buffer;
  }
}

import type { Rejection } from './limits';

/** The constants of RFC 9113. */

/** Frame types (section 6). */
export const FrameType = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

/** Flags (section 6). 0x1 means END_STREAM on DATA and HEADERS, ACK on SETTINGS and PING. */
export const Flag = { END_STREAM: 0x1, ACK: 0x1, END_HEADERS: 0x4, PADDED: 0x8, PRIORITY: 0x20 } as const;

/** Error codes (section 7). */
export const ErrorCode = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
  INADEQUATE_SECURITY: 12,
  HTTP_1_1_REQUIRED: 13,
} as const;
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

/** Settings (section 6.5.2; the last one is from RFC 9218). */
export const Setting = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
  NO_RFC7540_PRIORITIES: 9,
} as const;

/** The connection preface, which a client sends before its first frame (section 3.4). */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export const FRAME_HEADER_BYTES = 9;
/** The initial SETTINGS_MAX_FRAME_SIZE (section 6.5.2). The server never changes it and never sends a longer frame. */
export const MAX_FRAME_BYTES = 16_384;
/** The initial flow-control window of a connection and of its streams (section 6.9.2). */
export const DEFAULT_WINDOW_BYTES = 65_535;
/** The maximum of a flow-control window (section 6.9.1), and the highest stream identifier. */
export const MAX_31_BITS = 0x7fff_ffff;
/** The initial SETTINGS_HEADER_TABLE_SIZE (section 6.5.2). The server never changes its own. */
export const DEFAULT_HEADER_TABLE_BYTES = 4_096;

/**
 * A connection error (RFC 9113, section 5.4.1): the peer violated the protocol or exceeded a limit. It is thrown while
 * a frame is read and caught in one place, which sends GOAWAY with this code.
 */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';

  /** `message` becomes the debug data of GOAWAY. */
  constructor(
    readonly code: ErrorCode,
    readonly rejection: Rejection,
    message: string,
  ) {
    super(message);
  }
}

/** Ends the connection with PROTOCOL_ERROR. */
export function protocolError(message: string): never {
  throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', message);
}

/**
 * Allocates memory for bytes that are kept beyond the turn. It is never a slice of the pool that small buffers share:
 * one byte kept there would keep the whole pool, which is 8 KiB up to Node 22 and 64 KiB from Node 24 on.
 */
function roomToKeep(length: number): Buffer {
  return Buffer.allocUnsafeSlow(length);
}

/** Copies `source[start, end)`, so that keeping the bytes does not keep the chunk in which they were received. */
export function copyToKeep(source: Buffer, start: number, end: number): Buffer {
  const copy = roomToKeep(end - start);
  source.copy(copy, 0, start, end);
  return copy;
}

/** Bytes of a whole that arrive in pieces. Their memory grows with what has arrived, not with the length announced. */
export class GatheredBytes {
  length = 0;
  /** The bytes after {@link length} have no meaning. */
  bytes: Buffer;

  constructor(room: number) {
    this.bytes = roomToKeep(room);
  }

  /** Appends `source[start, end)`. `most`: the length of the whole. */
  append(source: Buffer, start: number, end: number, most = Infinity): void {
    const needed = this.length + end - start;
    if (needed > this.bytes.length) {
      const grown = roomToKeep(Math.max(needed, Math.min(most, 2 * this.bytes.length)));
      this.bytes.copy(grown, 0, 0, this.length);
      this.bytes = grown;
    }
    source.copy(this.bytes, this.length, start, end);
    this.length = needed;
  }
}

const MAX_24_BITS = 0xff_ffff;
const SETTING_BYTES = 6;

/** The settings of the peer that affect what the server sends (RFC 9113, section 6.5.2). */
export class PeerSettings {
  initialWindowBytes = DEFAULT_WINDOW_BYTES;
  /** Advisory: the server may exceed it. */
  maxHeaderListBytes = Infinity;
  /**
   * The smallest table size announced so far. If it is below the default, the next block must begin with a size update.
   */
  smallestHeaderTableBytes = DEFAULT_HEADER_TABLE_BYTES;

  /**
   * Applies the payload of a SETTINGS frame, entry by entry, and returns how many entries are unknown settings. Throws
   * if a value is invalid, even if a later entry of the frame overrides it.
   */
  apply(source: Buffer, start: number, end: number): number {
    let unknown = 0;
    for (let at = start; at < end; at += SETTING_BYTES) {
      const value = source.readUInt32BE(at + 2);
      switch (source.readUInt16BE(at)) {
        case Setting.HEADER_TABLE_SIZE:
          this.smallestHeaderTableBytes = Math.min(this.smallestHeaderTableBytes, value);
          break;
        case Setting.INITIAL_WINDOW_SIZE:
          if (value > MAX_31_BITS) {
            throw new ConnectionError(
              ErrorCode.FLOW_CONTROL_ERROR,
              'flow_control_error',
              'SETTINGS_INITIAL_WINDOW_SIZE too large',
            );
          }
          this.initialWindowBytes = value;
          break;
        case Setting.ENABLE_PUSH:
        case Setting.NO_RFC7540_PRIORITIES:
          if (value > 1) protocolError('a setting that must be 0 or 1 is neither');
          break;
        case Setting.MAX_FRAME_SIZE:
          // Not stored: the server never sends a frame longer than the smallest permitted value.
          if (value < MAX_FRAME_BYTES || value > MAX_24_BITS) protocolError('SETTINGS_MAX_FRAME_SIZE out of range');
          break;
        case Setting.MAX_HEADER_LIST_SIZE:
          this.maxHeaderListBytes = value;
          break;
        case Setting.MAX_CONCURRENT_STREAMS:
          // Limits server push, which is not implemented.
          break;
        default:
          unknown += 1;
      }
    }
    return unknown;
  }
}

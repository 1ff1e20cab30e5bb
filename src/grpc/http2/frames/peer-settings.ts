import { ConnectionError, protocolError } from './errors';
import {
  DEFAULT_HEADER_TABLE_BYTES,
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  MAX_31_BITS,
  MAX_FRAME_BYTES,
  Setting,
} from './protocol';

const MAX_24_BITS = 0xff_ffff;
const SETTING_BYTES = 6;

/** The settings of the peer that affect what the server sends (RFC 9113, section 6.5.2). */
export class PeerSettings {
  headerTableBytes = DEFAULT_HEADER_TABLE_BYTES;
  initialWindowBytes = DEFAULT_WINDOW_BYTES;
  /** Advisory: the server may exceed it. */
  maxHeaderListBytes = Infinity;
  /** The smallest table size announced so far. If it is below the default, the next block must begin with a size update. */
  smallestHeaderTableBytes = DEFAULT_HEADER_TABLE_BYTES;

  /**
   * Applies the payload of a SETTINGS frame, entry by entry, and returns how many entries are unknown settings. Throws if a
   * value is invalid, even if a later entry of the frame overrides it.
   */
  apply(source: Buffer, start: number, end: number): number {
    let unknown = 0;
    for (let at = start; at < end; at += SETTING_BYTES) {
      const value = source.readUInt32BE(at + 2);
      switch (source.readUInt16BE(at)) {
        case Setting.HEADER_TABLE_SIZE:
          this.headerTableBytes = value;
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

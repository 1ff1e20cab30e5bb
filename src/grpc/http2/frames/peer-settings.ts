import { ConnectionError } from './errors';
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

/** The settings of the peer that we heed (RFC 9113, section 6.5.2). */
export class PeerSettings {
  headerTableBytes = DEFAULT_HEADER_TABLE_BYTES;
  initialWindowBytes = DEFAULT_WINDOW_BYTES;
  /** Advisory. */
  maxHeaderListBytes = Infinity;
  /** The smallest table size that was announced at any time: our first block after it must own up to it. */
  smallestHeaderTableBytes = DEFAULT_HEADER_TABLE_BYTES;

  /**
   * Applies a SETTINGS payload in its order, and returns how many of its entries nobody knows. Each value is judged, also
   * one that a later entry of the frame overrides.
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
          if (value > 1) this.#refuse('a setting that is 0 or 1 is neither');
          break;
        case Setting.MAX_FRAME_SIZE:
          // We never send a longer frame than the smallest that this may allow.
          if (value < MAX_FRAME_BYTES || value > MAX_24_BITS) this.#refuse('SETTINGS_MAX_FRAME_SIZE out of range');
          break;
        case Setting.MAX_HEADER_LIST_SIZE:
          this.maxHeaderListBytes = value;
          break;
        case Setting.MAX_CONCURRENT_STREAMS:
          // Bounds what we push, which is nothing.
          break;
        default:
          unknown += 1;
      }
    }
    return unknown;
  }

  #refuse(message: string): never {
    throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', message);
  }
}

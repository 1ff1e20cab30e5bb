import { ConnectionError, protocolError } from '../protocol';
import type { FrameHeader } from './frame-reader';
import { ErrorCode, Flag, FrameType, MAX_31_BITS, MAX_FRAME_BYTES } from '../protocol';

const { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION } =
  FrameType;

function sizeError(message: string): never {
  throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, 'protocol_error', message);
}

/**
 * Checks what the header of a frame alone can violate (RFC 9113, sections 4.2 and 6): an invalid length, a stream identifier
 * on a frame of the connection, or none on a frame of a stream. Throws a {@link ConnectionError}. A PRIORITY frame of a wrong
 * length is the exception: it is a stream error, and checked where its stream is known.
 */
export function validateFrame({ type, flags, stream, length }: FrameHeader): void {
  if (length > MAX_FRAME_BYTES) sizeError('frame longer than SETTINGS_MAX_FRAME_SIZE');
  switch (type) {
    case DATA:
    case HEADERS:
      if (stream === 0) protocolError('a frame that requires a stream is on stream 0');
      if ((flags & Flag.PADDED) !== 0 && length === 0) sizeError('frame too short for its pad length');
      if (type === HEADERS && (flags & Flag.PRIORITY) !== 0 && length < ((flags & Flag.PADDED) === 0 ? 5 : 6)) {
        sizeError('frame too short for its priority fields');
      }
      return;
    case PRIORITY:
    case CONTINUATION:
      if (stream === 0) protocolError('a frame that requires a stream is on stream 0');
      return;
    case RST_STREAM:
      if (length !== 4) sizeError('RST_STREAM must have 4 bytes');
      if (stream === 0) protocolError('a frame that requires a stream is on stream 0');
      return;
    case SETTINGS:
      if (stream !== 0) protocolError('SETTINGS on a stream');
      if ((flags & Flag.ACK) === 0 ? length % 6 !== 0 : length !== 0) sizeError('invalid length of SETTINGS');
      return;
    case PUSH_PROMISE:
      protocolError('PUSH_PROMISE from a client');
      return;
    case PING:
      if (stream !== 0) protocolError('PING on a stream');
      if (length !== 8) sizeError('PING must have 8 bytes');
      return;
    case GOAWAY:
      if (stream !== 0) protocolError('GOAWAY on a stream');
      if (length < 8) sizeError('GOAWAY must have at least 8 bytes');
      return;
    case WINDOW_UPDATE:
      if (length !== 4) sizeError('WINDOW_UPDATE must have 4 bytes');
      return;
    default:
  }
}

/** The stream dependency at the beginning of the priority fields, without the exclusive bit. */
export function dependencyAt(source: Buffer, start: number): number {
  return source.readUInt32BE(start) & MAX_31_BITS;
}

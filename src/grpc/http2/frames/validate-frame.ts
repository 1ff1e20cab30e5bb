import { ErrorCode, Flag, FrameType, MAX_31_BITS, MAX_FRAME_BYTES } from './protocol';
import { ConnectionError } from './errors';
const { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION } =
  FrameType;

function protocolError(message: string): never {
  throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', message);
}
function sizeError(message: string): never {
  throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, 'protocol_error', message);
}

/**
 * What a frame's header alone tells (RFC 9113, sections 4.2 and 6): a length that cannot be right, a stream where none
 * belongs or none where one does. All of it ends the connection. PRIORITY of a wrong length is the one exception, and is
 * judged with its stream.
 */
export function validateFrame(type: number, flags: number, stream: number, length: number): void {
  if (length > MAX_FRAME_BYTES) sizeError('frame longer than SETTINGS_MAX_FRAME_SIZE');
  switch (type) {
    case DATA:
    case HEADERS:
      if (stream === 0) protocolError('frame of a stream on stream 0');
      if ((flags & Flag.PADDED) !== 0 && length === 0) sizeError('no room for the pad length');
      if (type === HEADERS && (flags & Flag.PRIORITY) !== 0 && length < ((flags & Flag.PADDED) === 0 ? 5 : 6)) {
        sizeError('no room for the priority fields');
      }
      return;
    case PRIORITY:
    case CONTINUATION:
      if (stream === 0) protocolError('frame of a stream on stream 0');
      return;
    case RST_STREAM:
      if (length !== 4) sizeError('RST_STREAM is 4 bytes');
      if (stream === 0) protocolError('frame of a stream on stream 0');
      return;
    case SETTINGS:
      if (stream !== 0) protocolError('SETTINGS on a stream');
      if ((flags & Flag.ACK) === 0 ? length % 6 !== 0 : length !== 0) sizeError('length of SETTINGS');
      return;
    case PUSH_PROMISE:
      protocolError('PUSH_PROMISE from a client');
      return;
    case PING:
      if (stream !== 0) protocolError('PING on a stream');
      if (length !== 8) sizeError('PING is 8 bytes');
      return;
    case GOAWAY:
      if (stream !== 0) protocolError('GOAWAY on a stream');
      if (length < 8) sizeError('GOAWAY is at least 8 bytes');
      return;
    case WINDOW_UPDATE:
      if (length !== 4) sizeError('WINDOW_UPDATE is 4 bytes');
      return;
    default:
  }
}

/** The stream that priority fields depend on; the exclusive bit is not of the number. */
export function dependencyAt(source: Buffer, start: number): number {
  return source.readUInt32BE(start) & MAX_31_BITS;
}

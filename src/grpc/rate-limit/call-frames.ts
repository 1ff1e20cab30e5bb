import { FRAME_HEADER_BYTES, Flag, FrameType, PREFACE } from '../http2/protocol';
import { SHOULD_RATE_LIMIT } from './rate-limit-service';

/**
 * The frames of a call of ShouldRateLimit (RFC 9113), as a client sends them: those of the first one follow the preface
 * and the settings of its connection.
 *
 * @param index the number of the call on its connection, from 0
 */
export function callFrames(index: number, message: Uint8Array): Buffer {
  const { HEADERS, DATA, SETTINGS } = FrameType;
  const stream = 2 * index + 1;
  const prefixed = Buffer.concat([Buffer.of(0, 0, 0, 0, message.length), message]);
  return Buffer.concat([
    ...(index === 0 ? [PREFACE, frame([SETTINGS, 0, 0], Buffer.of())] : []),
    frame([HEADERS, Flag.END_HEADERS, stream], index === 0 ? FIRST_HEADERS : LATER_HEADERS),
    frame([DATA, Flag.END_STREAM, stream], prefixed),
  ]);
}

function frame([type, flags, stream]: readonly [number, number, number], payload: Buffer): Buffer {
  const head = Buffer.alloc(FRAME_HEADER_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/**
 * The headers in HPACK (RFC 7541): POST and http from the static table; the others are added to the dynamic table,
 * where later calls find them.
 */
const FIRST_HEADERS = Buffer.concat([
  Buffer.of(0x83, 0x86),
  added(0x44, SHOULD_RATE_LIMIT),
  added(0x41, 'localhost'),
  added(0x5f, 'application/grpc'),
  Buffer.concat([added(0x40, 'te'), lengthPrefixed('trailers')]),
]);
const LATER_HEADERS = Buffer.of(0x83, 0x86, 0xc1, 0xc0, 0xbf, 0xbe);

function added(name: number, text: string): Buffer {
  return Buffer.concat([Buffer.of(name), lengthPrefixed(text)]);
}

/** @param text of at most 126 bytes */
function lengthPrefixed(text: string): Buffer {
  return Buffer.concat([Buffer.of(text.length), Buffer.from(text)]);
}

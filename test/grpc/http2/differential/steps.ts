import { Flag, FrameType, MAX_31_BITS, PREFACE } from '../../../../src/grpc/http2/frames/protocol';

const HEADER_BYTES = 9;
const NAMES = Object.keys(FrameType);

/** A part of a client's input, after which the reaction of the server is read. */
export interface Step {
  readonly bytes: Buffer;
  /** The type of its last frame. */
  readonly frame: string;
  /** The stream of that frame; -1 without a frame. */
  readonly stream: number;
  /** It ends with a complete frame outside of a header block, so that a PING can follow. */
  readonly isComplete: boolean;
}

/** Splits the input of a connection into frames. A header block is one step, and the preface belongs to the first frame. */
export function stepsOf(bytes: Buffer): readonly Step[] {
  if (!bytes.subarray(0, PREFACE.length).equals(PREFACE))
    return [{ bytes, frame: 'no preface', stream: -1, isComplete: false }];
  const steps: Step[] = [];
  let start = 0;
  let at = PREFACE.length;
  let isInBlock = false;
  let frame = 'unknown';
  let stream = -1;
  while (bytes.length - at >= HEADER_BYTES) {
    const end = at + HEADER_BYTES + bytes.readUIntBE(at, 3);
    const type = bytes[at + 3]!;
    if (end > bytes.length) break;
    if (type === FrameType.HEADERS || type === FrameType.CONTINUATION || type === FrameType.PUSH_PROMISE) {
      isInBlock = (bytes[at + 4]! & Flag.END_HEADERS) === 0;
    }
    frame = NAMES[type] ?? 'unknown';
    stream = bytes.readUInt32BE(at + 5) & MAX_31_BITS;
    at = end;
    if (isInBlock) continue;
    steps.push({ bytes: bytes.subarray(start, at), frame, stream, isComplete: true });
    start = at;
  }
  if (start === bytes.length) return steps;
  return [...steps, { bytes: bytes.subarray(start), frame, stream, isComplete: false }];
}

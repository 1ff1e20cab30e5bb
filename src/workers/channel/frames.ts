import { MAX_BODY_BYTES } from './channel';
import { TOPICS, type Topic } from './topics';

/** The length of the body as an unsigned 32-bit number, little-endian, and the topic in a byte. */
const HEADER_BYTES = 5;
const KNOWN_TOPICS: ReadonlySet<number> = new Set(Object.values(TOPICS));

/** @throws RangeError when the body is too long */
export function encodeFrame(topic: Topic, body: Uint8Array | string): Buffer {
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  if (length > MAX_BODY_BYTES) throw new RangeError(`a frame of ${length} bytes is longer than ${MAX_BODY_BYTES}`);
  const frame = Buffer.allocUnsafe(HEADER_BYTES + length);
  frame.writeUInt32LE(length, 0);
  frame[4] = topic;
  if (typeof body === 'string') frame.write(body, HEADER_BYTES);
  else frame.set(body, HEADER_BYTES);
  return frame;
}

/** Finds the frames in a sequence of chunks, which may begin and end anywhere. */
export class FrameReader {
  readonly #onFrame: (topic: Topic, body: Buffer) => void;
  /** The beginning of a frame whose end has not arrived, in pieces. */
  #pieces: Buffer[] = [];
  #held = 0;
  /** The bytes of the frame that `#pieces` begins, or of a header while its length is not known. */
  #needed = HEADER_BYTES;

  constructor(onFrame: (topic: Topic, body: Buffer) => void) {
    this.#onFrame = onFrame;
  }

  /** @returns false when the bytes are not frames; what follows them cannot be read either */
  read(chunk: Buffer): boolean {
    if (this.#held + chunk.length < this.#needed) {
      this.#keep(chunk);
      return true;
    }
    let bytes = chunk;
    if (this.#held > 0) {
      bytes = Buffer.concat([...this.#pieces, chunk]);
      this.#pieces = [];
      this.#held = 0;
    }
    this.#needed = HEADER_BYTES;
    return this.#readFrames(bytes);
  }

  #readFrames(bytes: Buffer): boolean {
    let at = 0;
    while (bytes.length - at >= HEADER_BYTES) {
      const length = bytes.readUInt32LE(at);
      const topic = bytes[at + 4] as number;
      if (length > MAX_BODY_BYTES || !KNOWN_TOPICS.has(topic)) return false;
      const end = at + HEADER_BYTES + length;
      if (end > bytes.length) {
        this.#needed = HEADER_BYTES + length;
        break;
      }
      this.#onFrame(topic as Topic, bytes.subarray(at + HEADER_BYTES, end));
      at = end;
    }
    if (at < bytes.length) this.#keep(bytes.subarray(at));
    return true;
  }

  #keep(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#held += piece.length;
  }
}

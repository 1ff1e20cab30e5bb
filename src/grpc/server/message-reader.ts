import { GatheredBytes } from '../http2/protocol';
import type { Stream } from '../http2/stream';
import type { Streams } from '../http2/streams';
import { type CallFailure, Failure, MAX_MESSAGE_BYTES } from './responses';

/** The length of the prefix of a message: one byte of flags, four bytes of length. */
export const PREFIX_BYTES = 5;
const INITIAL_BODY_BYTES = 256;

export interface MessageReceiver {
  /**
   * Receives a complete message in `source[start, end)`. The bytes do not change, but a view of them keeps a whole
   * input chunk in memory. Returns false to stop reading.
   */
  received(source: Buffer, start: number, end: number, isCompressed: boolean): boolean;
  /** The messages cannot be read. */
  failed(failure: CallFailure): void;
}

/** Assembles length-prefixed messages from DATA frames, wherever the frames split them. */
export class MessageReader {
  readonly #receiver: MessageReceiver;
  readonly #streams: Streams;
  readonly #stream: Stream;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixLength = 0;
  #body: GatheredBytes | undefined;
  #isOver = false;

  constructor(receiver: MessageReceiver, streams: Streams, stream: Stream) {
    this.#receiver = receiver;
    this.#streams = streams;
    this.#stream = stream;
  }

  /** A message has begun and is not complete. */
  get isInside(): boolean {
    return this.#prefixLength > 0;
  }

  read(source: Buffer, start: number, end: number): void {
    let at = start;
    while (at < end && !this.#isOver) {
      while (this.#prefixLength < PREFIX_BYTES && at < end) {
        this.#prefix[this.#prefixLength] = source[at]!;
        this.#prefixLength += 1;
        at += 1;
      }
      if (this.#prefixLength < PREFIX_BYTES) return;
      const flag = this.#prefix[0]!;
      const length = this.#prefix.readUInt32BE(1);
      // Checked as soon as the prefix is complete; memory is allocated only for bytes that have arrived.
      if (flag > 1) return this.#fail(Failure.BAD_FLAG);
      if (length > MAX_MESSAGE_BYTES) return this.#fail(Failure.TOO_LARGE);
      if (this.#body === undefined && end - at >= length) {
        this.#received(source, at, at + length, flag === 1);
        at += length;
        continue;
      }
      const body = (this.#body ??= new GatheredBytes(Math.min(length, INITIAL_BODY_BYTES)));
      const count = Math.min(length - body.length, end - at);
      if (!this.#streams.hold(this.#stream, count)) return this.#fail(Failure.TOO_MUCH_MEMORY);
      body.append(source, at, at + count, length);
      at += count;
      if (body.length < length) return;
      this.#streams.releaseHeld(this.#stream, length);
      this.#body = undefined;
      this.#received(body.bytes, 0, length, flag === 1);
    }
  }

  #received(source: Buffer, start: number, end: number, isCompressed: boolean): void {
    this.#prefixLength = 0;
    this.#isOver = !this.#receiver.received(source, start, end, isCompressed);
  }

  #fail(failure: CallFailure): void {
    this.#isOver = true;
    this.#receiver.failed(failure);
  }
}

const prefix = Buffer.alloc(PREFIX_BYTES);

/** The prefix of an uncompressed message of this length; valid until the next call. */
export function messagePrefix(length: number): Uint8Array {
  prefix[1] = length >>> 24;
  prefix[2] = length >>> 16;
  prefix[3] = length >>> 8;
  prefix[4] = length;
  return prefix;
}

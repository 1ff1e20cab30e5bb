import { roomToKeep } from '../http2/protocol';

const SECOND = 1_000;
const KIB = 1_024;

/** The size of a request message. Larger messages fail with RESOURCE_EXHAUSTED. */
export const MAX_MESSAGE_BYTES = 4 * KIB * KIB;
/** The time to receive the only message of a call without a deadline, from the start of the call. */
export const REQUEST_TIMEOUT_MS = 30 * SECOND;
/** Responses of one call that the peer has not read: above this, the next message of the call is not handled. */
export const STREAM_OUTPUT_BYTES = 64 * KIB;
/** Received messages of one call that are not handled yet: above this, the caller gets no WINDOW_UPDATE. */
export const STREAM_INPUT_BYTES = 64 * KIB;
/** The length of an encoded status message. */
export const MAX_STATUS_MESSAGE_BYTES = KIB;

/** The length of the prefix of a message: one byte of flags, four bytes of length. */
export const PREFIX_BYTES = 5;
const INITIAL_BODY_BYTES = 256;

/** Why a sequence of messages cannot be read. */
export type ReadFailure = 'too large' | 'bad flag' | 'too much memory';

export interface MessageReceiver {
  /**
   * Receives a complete message in `source[start, end)`. The bytes do not change, but a view of them keeps a whole input chunk in
   * memory. Returns false to stop reading.
   */
  received(source: Buffer, start: number, end: number, isCompressed: boolean): boolean;
  failed(failure: ReadFailure): void;
  /** Counts bytes of an incomplete message towards the memory limit. Returns false if that would exceed it. */
  hold(bytes: number): boolean;
  /** Undoes {@link hold}. */
  releaseHeld(bytes: number): void;
}

/** Assembles length-prefixed messages from DATA frames, wherever the frames split them. */
export class MessageReader {
  readonly #receiver: MessageReceiver;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixLength = 0;
  #body: Buffer | undefined;
  #bodyLength = 0;
  #isOver = false;

  constructor(receiver: MessageReceiver) {
    this.#receiver = receiver;
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
      if (flag > 1) return this.#fail('bad flag');
      if (length > MAX_MESSAGE_BYTES) return this.#fail('too large');
      if (this.#body === undefined && end - at >= length) {
        this.#prefixLength = 0;
        this.#isOver = !this.#receiver.received(source, at, at + length, flag === 1);
        at += length;
        continue;
      }
      const count = Math.min(length - this.#bodyLength, end - at);
      if (count > 0 && !this.#receiver.hold(count)) return this.#fail('too much memory');
      this.#append(source, at, count, length);
      at += count;
      if (this.#bodyLength < length) return;
      const body = this.#body!;
      this.#receiver.releaseHeld(length);
      this.#body = undefined;
      this.#bodyLength = 0;
      this.#prefixLength = 0;
      this.#isOver = !this.#receiver.received(body, 0, length, flag === 1);
    }
  }

  #append(source: Buffer, at: number, count: number, length: number): void {
    const needed = this.#bodyLength + count;
    if (this.#body === undefined || needed > this.#body.length) {
      const grown = roomToKeep(Math.min(length, Math.max(needed, 2 * (this.#body?.length ?? INITIAL_BODY_BYTES))));
      this.#body?.copy(grown, 0, 0, this.#bodyLength);
      this.#body = grown;
    }
    source.copy(this.#body, this.#bodyLength, at, at + count);
    this.#bodyLength = needed;
  }

  #fail(failure: ReadFailure): void {
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

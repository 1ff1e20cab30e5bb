import { roomToKeep } from '../../http2/frames/copy-buffer';
import { MAX_MESSAGE_BYTES } from '../limits';

/** Bytes before each message: a flag and a length. */
export const PREFIX_BYTES = 5;
const FIRST_BYTES = 256;

/** What was wrong with a sequence of messages. */
export type ReadFailure = 'too large' | 'bad flag' | 'too much memory';

export interface MessageReceiver {
  /**
   * A whole message in `source[start, end)`, which stays as it is for as long as anybody looks. False to read no further.
   */
  received(source: Buffer, start: number, end: number, isCompressed: boolean): boolean;
  failed(failure: ReadFailure): void;
  /** Whether so many bytes more may be kept for a message that is not whole. */
  hold(bytes: number): boolean;
  letGo(bytes: number): void;
}

/** Puts length-prefixed messages together, however they are cut into DATA frames. */
export class MessageReader {
  readonly #receiver: MessageReceiver;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixed = 0;
  #body: Buffer | undefined;
  #gathered = 0;
  #isOver = false;

  constructor(receiver: MessageReceiver) {
    this.#receiver = receiver;
  }

  /** In the middle of a message. */
  get isInside(): boolean {
    return this.#prefixed > 0;
  }

  read(source: Buffer, start: number, end: number): void {
    let at = start;
    while (at < end && !this.#isOver) {
      while (this.#prefixed < PREFIX_BYTES && at < end) this.#prefix[this.#prefixed++] = source[at++]!;
      if (this.#prefixed < PREFIX_BYTES) return;
      const flag = this.#prefix[0]!;
      const length = this.#prefix.readUInt32BE(1);
      // The fifth byte decides: nothing is allocated for what was only announced.
      if (flag > 1) return this.#fail('bad flag');
      if (length > MAX_MESSAGE_BYTES) return this.#fail('too large');
      if (this.#body === undefined && end - at >= length) {
        this.#prefixed = 0;
        this.#isOver = !this.#receiver.received(source, at, at + length, flag === 1);
        at += length;
        continue;
      }
      const taken = Math.min(length - this.#gathered, end - at);
      if (taken > 0 && !this.#receiver.hold(taken)) return this.#fail('too much memory');
      this.#gather(source, at, taken, length);
      at += taken;
      if (this.#gathered < length) return;
      const body = this.#body!;
      this.#receiver.letGo(length);
      this.#body = undefined;
      this.#gathered = 0;
      this.#prefixed = 0;
      this.#isOver = !this.#receiver.received(body, 0, length, flag === 1);
    }
  }

  #gather(source: Buffer, at: number, taken: number, length: number): void {
    const needed = this.#gathered + taken;
    if (this.#body === undefined || needed > this.#body.length) {
      const grown = roomToKeep(Math.min(length, Math.max(needed, 2 * (this.#body?.length ?? FIRST_BYTES))));
      this.#body?.copy(grown, 0, 0, this.#gathered);
      this.#body = grown;
    }
    source.copy(this.#body, this.#gathered, at, at + taken);
    this.#gathered = needed;
  }

  #fail(failure: ReadFailure): void {
    this.#isOver = true;
    this.#receiver.failed(failure);
  }
}

const prefix = Buffer.alloc(5);

/** The bytes before an uncompressed message of this length; valid until the next call. */
export function writePrefix(length: number): Uint8Array {
  prefix[1] = length >>> 24;
  prefix[2] = length >>> 16;
  prefix[3] = length >>> 8;
  prefix[4] = length;
  return prefix;
}

/** Most bytes of a line and of a bulk string: replies hold integers, errors, host names, and counts as text. */
const MAX_ITEM_BYTES = 64 * 1024;
/** Most bytes of a reply with everything in it. */
const MAX_REPLY_BYTES = 8 * 1024 * 1024;
/** Most elements of a reply, with those of the lists in it: a script call has a few thousand keys at most. */
const MAX_ELEMENTS = 65_536;
/** The same where the list of slots is read: one of 16,384 ranges, each with a master and a replica. */
const MAX_ELEMENTS_OF_SLOTS = 262_144;

const NONE = 0;
const CR = 0x0d;
const DIGIT_0 = 0x30;
const BULK = 0x24;
const LIST = 0x2a;

/**
 * Bounds the replies on one connection to what a batch or the list of slots can need. It sees each chunk before the
 * parser of ioredis, which allocates a list as soon as its length is announced, and keeps all bytes of a reply until it
 * is complete.
 *
 * It reads lengths and ends of lines exactly as that parser does (a line ends with CR and any byte; a length with a
 * sign is negative), because a server could otherwise hide an announcement where only one of them sees it. Whatever
 * else is wrong is left to the parser.
 */
export class ReplyBounds {
  readonly #maxElements: number;
  /** The first byte of the line that is being read, {@link NONE} between lines. */
  #type = NONE;
  /** The digits of this line that were read, as a number. */
  #value = 0;
  /** Bytes of the beginning of this line in earlier chunks. */
  #lineBytes = 0;
  /** Bytes to pass over before the next line: the end of a line, and a bulk string. */
  #skip = 0;
  /** Elements of the current reply that are still to come, and all that it has announced. */
  #missing = 0;
  #announced = 0;
  /** Bytes of the current reply in earlier chunks. */
  #replyBytes = 0;

  /** @param counts whether the connection is for counting, and not for the list of slots or a sentinel's answers */
  constructor(counts: boolean) {
    this.#maxElements = counts ? MAX_ELEMENTS : MAX_ELEMENTS_OF_SLOTS;
  }

  /**
   * Reads the next bytes of the connection.
   *
   * @throws Error that says what the server announced or sent, when that is more than a reply may have
   */
  check(bytes: Uint8Array): void {
    const end = bytes.length;
    let type = this.#type;
    let value = this.#value;
    /** Where the current line and the current reply begin, negative: in an earlier chunk. */
    let line = -this.#lineBytes;
    let reply = -this.#replyBytes;
    let at = this.#skip;
    for (; at < end; at += 1) {
      const byte = bytes[at] as number;
      if (type === NONE) {
        if (this.#missing === 0) {
          this.#missing = 1;
          this.#announced = 0;
          reply = at;
        }
        type = byte;
        value = 0;
        line = at;
      } else if (byte === CR) {
        // The byte after CR, and a bulk string with the end of its line.
        at += 1;
        if (type === BULK && value >= 0) at += this.#bulk(value) + 2;
        this.#missing += type === LIST && value > 0 ? this.#list(value) - 1 : -1;
        type = NONE;
      } else {
        value = value * 10 + byte - DIGIT_0;
      }
    }
    this.#type = type;
    this.#value = value;
    this.#skip = at - end;
    this.#lineBytes = type === NONE ? 0 : end - line;
    this.#replyBytes = this.#missing === 0 ? 0 : end - reply;
    if (this.#lineBytes > MAX_ITEM_BYTES) throw tooLarge(`a line of more than ${MAX_ITEM_BYTES} bytes`);
    if (this.#replyBytes > MAX_REPLY_BYTES) throw tooLarge(`more than ${MAX_REPLY_BYTES} bytes`);
  }

  #bulk(length: number): number {
    if (length > MAX_ITEM_BYTES) throw tooLarge(`a string of ${length} bytes, and ${MAX_ITEM_BYTES} are allowed`);
    return length;
  }

  #list(length: number): number {
    this.#announced += length;
    if (this.#announced <= this.#maxElements) return length;
    throw tooLarge(`${this.#announced} elements, and ${this.#maxElements} are allowed`);
  }
}

function tooLarge(what: string): Error {
  return new Error(`the server sends a reply that is too large: ${what}`);
}

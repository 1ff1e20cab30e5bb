import { InvalidReply } from './store-error';

/** Most bytes of a line and of a bulk string: replies hold integers, errors, host names, and counts as text. */
const MAX_ITEM_BYTES = 64 * 1024;
/** Most bytes of a reply with everything in it. */
const MAX_REPLY_BYTES = 8 * 1024 * 1024;
/** Most elements of a reply, with those of the lists in it: a script call has a few thousand keys at most. */
const MAX_ELEMENTS = 65_536;
/** Most elements of a list of slots: 16,384 ranges, each with a master and a replica. */
const MAX_ELEMENTS_OF_SLOTS = 262_144;

/** What the next byte belongs to, where it is not a line: nothing yet, the line feed that ends a line, ... */
const NONE = 0;
const LINE_FEED = 1;
/** ... the one after the length of a string, or the carriage return after the string. */
const STRING_BEGINS = 2;
const STRING_ENDS = 3;

const LF = 0x0a;
const CR = 0x0d;
const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const STRING = 0x24;
const LIST = 0x2a;
const INTEGER = 0x3a;
const SIMPLE_STRING = 0x2b;
const ERROR = MINUS;

/** Most digits of an integer of Redis, which has 64 bits and a sign. */
const MAX_DIGITS = 19;

/**
 * Checks that the bytes on one connection are replies of the protocol (RESP2), and bounds them to what a batch or the
 * list of slots can need. Each chunk is checked before the parser of ioredis reads it. The parser takes whatever
 * follows a colon for an integer, allocates a list as soon as its length is announced, and keeps all bytes of a reply
 * until it is complete.
 */
export class ReplyBounds {
  readonly #maxElements: number;
  /** The first byte of the line that is being read; between lines one of the states above. */
  #state = NONE;
  /** The digits of this line that were read, as a number, and whether a sign precedes them. */
  #value = 0;
  #isNegative = false;
  /** Bytes of the beginning of this line in earlier chunks. */
  #lineBytes = 0;
  /** Bytes of a string to pass over. */
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
   * @throws InvalidReply that says what the server announced or sent, when it is no reply or more than one may have
   */
  check(bytes: Uint8Array): void {
    const end = bytes.length;
    let state = this.#state;
    let value = this.#value;
    /** Where the current line and the current reply begin, negative: in an earlier chunk. */
    let line = -this.#lineBytes;
    let reply = -this.#replyBytes;
    let missing = this.#missing;
    let at = this.#skip;
    for (; at < end; at += 1) {
      const byte = bytes[at] as number;
      if (state > STRING_ENDS) {
        const digit = byte - DIGIT_0;
        if (digit >= 0 && digit <= 9) value = value * 10 + digit;
        else if (byte === CR) {
          missing += this.#endLine(state, value, at - line - 1);
          state = state === STRING && !this.#isNegative ? STRING_BEGINS : LINE_FEED;
        } else if (state !== SIMPLE_STRING && state !== ERROR) {
          if (byte !== MINUS || at !== line + 1) throw malformed('its number has', byte);
          this.#isNegative = true;
        }
      } else if (state === NONE) {
        if (byte !== INTEGER && byte !== STRING && byte !== LIST && byte !== SIMPLE_STRING && byte !== ERROR)
          throw malformed('it begins with', byte);
        if (missing === 0) {
          missing = 1;
          this.#announced = 0;
          reply = at;
        }
        // Most replies are integers, and most of them are whole.
        if (byte === INTEGER) {
          const next = endOfInteger(bytes, at + 1);
          if (next > 0) {
            at = next;
            missing -= 1;
            continue;
          }
        }
        this.#isNegative = false;
        state = byte;
        value = 0;
        line = at;
      } else {
        if (byte !== (state === STRING_ENDS ? CR : LF)) throw malformed('it does not end before', byte);
        if (state === STRING_BEGINS) at += value;
        state = state === LINE_FEED ? NONE : state === STRING_BEGINS ? STRING_ENDS : LINE_FEED;
      }
    }
    this.#state = state;
    this.#value = value;
    this.#skip = at - end;
    this.#lineBytes = state > STRING_ENDS ? end - line : 0;
    this.#missing = missing;
    this.#replyBytes = missing === 0 ? 0 : end - reply;
    if (this.#lineBytes > MAX_ITEM_BYTES) throw tooLarge(`a line of more than ${MAX_ITEM_BYTES} bytes`);
    if (this.#replyBytes > MAX_REPLY_BYTES) throw tooLarge(`more than ${MAX_REPLY_BYTES} bytes`);
  }

  /**
   * @param length of the line without its first byte and its end. @returns how many more elements are to come, or fewer
   */
  #endLine(type: number, value: number, length: number): number {
    const isNegative = this.#isNegative;
    if (type !== SIMPLE_STRING && type !== ERROR) {
      const digits = isNegative ? length - 1 : length;
      if (type === LIST && !isNegative) this.#announce(value);
      if (type === STRING && value > MAX_ITEM_BYTES)
        throw tooLarge(`a string of ${value} bytes, and ${MAX_ITEM_BYTES} are allowed`);
      if (digits === 0 || digits > MAX_DIGITS) throw new InvalidReply('is malformed: its number is not one of 64 bits');
      // The only length with a sign is that of nothing, -1.
      if (isNegative && type !== INTEGER && value !== 1)
        throw new InvalidReply('is malformed: it has a negative length');
    }
    return type === LIST && !isNegative ? value - 1 : -1;
  }

  #announce(length: number): void {
    this.#announced += length;
    if (this.#announced > this.#maxElements)
      throw tooLarge(`${this.#announced} elements, and ${this.#maxElements} are allowed`);
  }
}

/** The last byte of an integer, whose first digit or sign is given; 0 when it does not end here, or is none. */
function endOfInteger(bytes: Uint8Array, start: number): number {
  const first = bytes[start] === MINUS ? start + 1 : start;
  let at = first;
  for (let digit = (bytes[at] as number) - DIGIT_0; digit >= 0 && digit <= 9;)
    digit = (bytes[(at += 1)] as number) - DIGIT_0;
  const isInteger = at > first && at - first <= MAX_DIGITS && bytes[at] === CR && bytes[at + 1] === LF;
  return isInteger ? at + 1 : 0;
}

function malformed(what: string, byte: number): InvalidReply {
  return new InvalidReply(`is malformed: ${what} the byte 0x${byte.toString(16).padStart(2, '0')}`);
}

function tooLarge(what: string): InvalidReply {
  return new InvalidReply(`is too large: ${what}`);
}

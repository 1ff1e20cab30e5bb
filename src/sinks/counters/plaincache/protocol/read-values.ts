import { LARGEST_COUNT } from '../../../../limiter/counter-operation';
import type { WireKey } from './legal-key';
import { ProtocolError, type ReplyReader, quoteLine } from './reply-reader';

/**
 * The keys of one `get`. A server replies to a `get` only when it has read the whole line and looked up all of its keys, so in reply to one
 * line for tens of thousands of keys, nothing would arrive for longer than the timeout.
 */
const KEYS_PER_GET = 1_000;

/**
 * The commands that read keys. They are sent at once: if each waited for the reply to the one before, the trip time of each would be added,
 * and the windows of a busy process would grow with it.
 */
export function getCommands(keys: Iterable<WireKey>): string {
  const all = [...keys];
  let text = '';
  for (let start = 0; start < all.length; start += KEYS_PER_GET) {
    text += `get ${all.slice(start, start + KEYS_PER_GET).join(' ')}\r\n`;
  }
  return text;
}

/** A value of a counter: decimal digits; after a decrement, blanks keep its length. */
const COUNT = /^ *(\d+) *$/;
const VALUE_LINE = /^VALUE (\S+) \d+ (\d+)(?: \d+)?$/;
/** More than any counter has; a longer value is not one. */
const MAX_VALUE_BYTES = 1024;

/** A stored value: a count, at most {@link LARGEST_COUNT}, or undefined for a value that is no number. */
export type StoredValue = number | undefined;

/** Reads the replies to {@link getCommands}: the values of the keys that exist. Each reply is a part. */
export class ValuesReader implements ReplyReader<ReadonlyMap<WireKey, StoredValue>> {
  readonly #requested: ReadonlySet<WireKey>;
  readonly #values: Map<WireKey, StoredValue>;
  readonly #parts: number;
  #partsRead = 0;
  #text = '';

  /** @param requested at least one key @param values receives each value when it arrives, for a reply that remains incomplete */
  constructor(requested: ReadonlySet<WireKey>, values = new Map<WireKey, StoredValue>()) {
    this.#requested = requested;
    this.#values = values;
    this.#parts = Math.ceil(requested.size / KEYS_PER_GET);
  }

  get partsRead(): number {
    return this.#partsRead;
  }

  read(chunk: Buffer): ReadonlyMap<WireKey, StoredValue> | undefined {
    this.#text += chunk.toString('latin1');
    let start = 0;
    for (;;) {
      const end = this.#text.indexOf('\r\n', start);
      if (end === -1) break;
      const line = this.#text.slice(start, end);
      if (line === 'END') {
        this.#partsRead += 1;
        start = end + 2;
        if (this.#partsRead < this.#parts) continue;
        if (start < this.#text.length) throw new ProtocolError('bytes follow the end of the values');
        return this.#values;
      }
      const next = this.#readValue(line, end + 2);
      if (next === undefined) break;
      start = next;
    }
    this.#text = this.#text.slice(start);
    if (this.#text.length > MAX_VALUE_BYTES * 2) throw new ProtocolError('a line is too long');
    return undefined;
  }

  /** @returns the position after the value; undefined when it is not complete */
  #readValue(line: string, start: number): number | undefined {
    const [, key, length] = VALUE_LINE.exec(line) ?? [];
    if (key === undefined || !this.#requested.has(key)) {
      throw new ProtocolError(`instead of a value, the server sent ${quoteLine(line)}`);
    }
    const size = Number(length);
    if (size > MAX_VALUE_BYTES) throw new ProtocolError(`a value has ${size} bytes, so it is not a count`);
    const end = start + size;
    if (this.#text.length < end + 2) return undefined;
    if (!this.#text.startsWith('\r\n', end)) throw new ProtocolError('a value is not as long as announced');
    const digits = COUNT.exec(this.#text.slice(start, end))?.[1];
    this.#values.set(key, digits === undefined ? undefined : Math.min(LARGEST_COUNT, Number(digits)));
    return end + 2;
  }
}

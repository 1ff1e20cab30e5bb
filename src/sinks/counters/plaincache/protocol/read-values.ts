import { LARGEST_COUNT } from '../../../../limiter/counter-operation';
import type { WireKey } from './legal-key';
import { ProtocolError, type ReplyReader, quoteLine } from './reply-reader';

/** The command that reads keys. */
export function getCommand(keys: Iterable<WireKey>): string {
  return `get ${[...keys].join(' ')}\r\n`;
}

/** A value of a counter: decimal digits; after a decrement, blanks keep its length. */
const COUNT = /^ *(\d+) *$/;
const VALUE_LINE = /^VALUE (\S+) \d+ (\d+)(?: \d+)?$/;
/** More than any counter has; a longer value is not one. */
const MAX_VALUE_BYTES = 1024;

/** A stored value: a count, at most {@link LARGEST_COUNT}, or undefined for a value that is no number. */
export type StoredValue = number | undefined;

/** Reads the reply to `get`: the values of the keys that exist. */
export class ValuesReader implements ReplyReader<ReadonlyMap<WireKey, StoredValue>> {
  readonly #requested: ReadonlySet<WireKey>;
  readonly #values = new Map<WireKey, StoredValue>();
  #text = '';

  constructor(requested: ReadonlySet<WireKey>) {
    this.#requested = requested;
  }

  read(chunk: Buffer): ReadonlyMap<WireKey, StoredValue> | undefined {
    this.#text += chunk.toString('latin1');
    let start = 0;
    for (;;) {
      const end = this.#text.indexOf('\r\n', start);
      if (end === -1) break;
      const line = this.#text.slice(start, end);
      if (line === 'END') {
        if (end + 2 < this.#text.length) throw new ProtocolError('bytes follow the end of the values');
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

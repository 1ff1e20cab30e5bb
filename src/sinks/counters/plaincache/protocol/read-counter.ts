import { LARGEST_COUNT } from '../../../../limiter/counter-operation';
import type { WireKey } from './legal-key';
import { ProtocolError, type ReplyReader, quoteLine } from './reply-reader';

/** Reads a value and its time to live, which `get` does not return. */
export function metaGetCommand(key: WireKey): string {
  return `mg ${key} t v\r\n`;
}

/** A key as the server has it. */
export interface ReadCounter {
  /** Undefined for a value that is no number. */
  readonly count: number | undefined;
  /** In seconds; null for a key that does not expire. */
  readonly timeToLive: number | null;
}

/** `unsupported`: the server is older than the command, 1.6. */
export type CounterReply = ReadCounter | 'absent' | 'unsupported';

const VALUE = /^VA (\d+) t(-?\d+) *\r\n/;
const COUNT = /^ *(\d+) *$/;
/** More than the reply with any count has. */
const MAX_REPLY = 1024;

/** Reads the reply to {@link metaGetCommand}. */
export class CounterReader implements ReplyReader<CounterReply> {
  #text = '';

  read(chunk: Buffer): CounterReply | undefined {
    this.#text += chunk.toString('latin1');
    if (this.#text === 'EN\r\n') return 'absent';
    if (this.#text === 'ERROR\r\n') return 'unsupported';
    const [head, size, timeToLive] = VALUE.exec(this.#text) ?? [];
    if (head !== undefined && this.#text.length >= head.length + Number(size) + 2) {
      const end = head.length + Number(size);
      if (this.#text.slice(end) !== '\r\n') throw new ProtocolError('a value is not as long as announced');
      const digits = COUNT.exec(this.#text.slice(head.length, end))?.[1];
      return {
        count: digits === undefined ? undefined : Math.min(LARGEST_COUNT, Number(digits)),
        timeToLive: Number(timeToLive) < 0 ? null : Number(timeToLive),
      };
    }
    if (this.#text.length > MAX_REPLY || (head === undefined && this.#text.includes('\n'))) {
      throw new ProtocolError(`in reply to mg, the server sent ${quoteLine(this.#text.split('\r\n')[0] ?? '')}`);
    }
    return undefined;
  }
}

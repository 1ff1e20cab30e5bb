import { crc32 } from 'node:zlib';
import { LARGEST_COUNT } from '../../../counting/operation';
import { DecisionError } from '../../../counting/decision-error';
import type { StoredCounter } from '../../../streams/ports/counter-administration';
import { excerpt } from '../../../text/excerpt';
import type { Request } from './connection';

const MAX_KEY_BYTES = 250;
const FIRST_LEGAL = 0x21;
const DELETE = 0x7f;

/**
 * A key as memcached receives it: its bytes in UTF-8, one character for each. This form is written as Latin-1, and the
 * server returns it.
 */
export type WireKey = string;

/**
 * Converts a key, with the rules of the Go service's client: at most 250 bytes, without blanks and control characters.
 * The server would take what follows a blank for another word of the command, and what follows a line end for another
 * command.
 *
 * @throws DecisionError `invalid_request` for any other key
 */
export function wireKey(key: string): WireKey {
  if (key.length <= MAX_KEY_BYTES && isPlain(key)) return key;
  const wire = Buffer.from(key, 'utf8').toString('latin1');
  if (wire.length > MAX_KEY_BYTES) {
    throw illegalKey(`has ${wire.length} bytes, and memcached allows ${MAX_KEY_BYTES}`);
  }
  for (let index = 0; index < wire.length; index += 1) {
    const byte = wire.charCodeAt(index);
    if (byte < FIRST_LEGAL || byte === DELETE) {
      throw illegalKey('contains white space or a control character, which memcached does not allow');
    }
  }
  return wire;
}

/** Whether every character is a legal one of ASCII, as in most keys: they are their own wire form. */
function isPlain(key: string): boolean {
  for (let index = 0; index < key.length; index += 1) {
    const code = key.charCodeAt(index);
    if (code < FIRST_LEGAL || code >= DELETE) return false;
  }
  return true;
}

function illegalKey(problem: string): DecisionError {
  return new DecisionError('invalid_request', `the key of a counter ${problem}`);
}

/**
 * The node that holds a key: CRC-32 (IEEE) of its bytes, modulo the number of nodes in their given order. Equal to the
 * client of the Go service, so that both can share the nodes. A node that is away keeps its keys.
 *
 * @param nodes at least one
 */
export function selectNode<T>(key: WireKey, nodes: readonly T[]): T {
  const index = nodes.length === 1 ? 0 : crc32(Buffer.from(key, 'latin1')) % nodes.length;
  return nodes[index]!;
}

/**
 * The most keys of one request. A server replies to a `get` only when it has read the whole line and looked up all of
 * its keys, so in reply to one line for tens of thousands of keys, nothing would arrive for longer than the timeout.
 * The requests for a batch are sent at once: if each waited for the reply to the one before, the trip time of each
 * would be added, and the windows of a busy process would grow with it.
 */
const KEYS_PER_REQUEST = 1_000;

function inParts<T>(all: readonly T[]): readonly (readonly T[])[] {
  if (all.length <= KEYS_PER_REQUEST) return [all];
  return [all.slice(0, KEYS_PER_REQUEST), ...inParts(all.slice(KEYS_PER_REQUEST))];
}

/** A stored value: a count, at most {@link LARGEST_COUNT}, or undefined for a value that is no number. */
export type StoredValue = number | undefined;

/** A value of a counter: decimal digits; after a decrement, blanks keep its length. */
const COUNT = /^ *(\d{1,20}) *$/;

function storedValue(text: string): StoredValue {
  const digits = COUNT.exec(text)?.[1];
  return digits === undefined ? undefined : Math.min(LARGEST_COUNT, Number(digits));
}

/** Reads keys. @param values receives those that exist, each when it arrives, for a reply that remains incomplete */
export function get(keys: ReadonlySet<WireKey>, values: Map<WireKey, StoredValue>): readonly Request<true>[] {
  return inParts([...keys]).map((part) => ({
    isRead: true,
    text: `get ${part.join(' ')}\r\n`,
    onLine: (line, value) => {
      if (line === 'END') return true;
      const key = line.slice('VALUE '.length, line.indexOf(' ', 'VALUE '.length));
      if (value === undefined || !line.startsWith('VALUE ') || !keys.has(key) || values.has(key))
        throw unexpected('get', line);
      values.set(key, storedValue(value));
      return undefined;
    },
  }));
}

/** A command that changes a counter. */
export interface WriteCommand {
  readonly kind: 'add' | 'set' | 'incr' | 'decr' | 'delete';
  readonly key: WireKey;
  /** What is added or subtracted; for `add` and `set`, the value. */
  readonly hits: number;
  /** The time to live of a key that is created, in seconds. */
  readonly lifetime: number;
}

/**
 * The outcome of one command, by its name in statistics: done, a condition that was not met, or the error line of the
 * server.
 */
export type WriteOutcome = 'success' | 'not_stored' | 'miss' | Error;

/** Executes commands. @param outcomes receives one for each, in their order, each when it arrives */
export function write(commands: readonly WriteCommand[], outcomes: WriteOutcome[]): readonly Request<true>[] {
  let end = 0;
  return inParts(commands).map((part) => {
    end += part.length;
    const partEnd = end;
    return {
      isRead: false,
      text: part.map(textOf).join(''),
      onLine: (line) => {
        outcomes.push(writeOutcome(commands[outcomes.length]!, line));
        return outcomes.length === partEnd ? true : undefined;
      },
    };
  });
}

function textOf({ kind, key, hits, lifetime }: WriteCommand): string {
  if (kind === 'delete') return `delete ${key}\r\n`;
  if (kind !== 'add' && kind !== 'set') return `${kind} ${key} ${hits}\r\n`;
  const value = String(hits);
  return `${kind} ${key} 0 ${memcachedExpiry(lifetime)} ${value.length}\r\n${value}\r\n`;
}

/** Counters have 64 bits; after a decrement, blanks keep the length of the value. */
const NUMBER = /^\d{1,20} *$/;
/** Errors of one command, after which the connection continues with the reply to the next one. */
const COMMAND_ERROR = /^(?:SERVER_ERROR |CLIENT_ERROR cannot increment or decrement non-numeric value)/;

/**
 * Every line is compared with what its command allows: a reply too many would otherwise be assigned to the next
 * command.
 */
function writeOutcome({ kind }: WriteCommand, line: string): WriteOutcome {
  const isStore = kind === 'add' || kind === 'set';
  if (isStore ? line === 'STORED' : kind === 'delete' ? line === 'DELETED' : NUMBER.test(line)) return 'success';
  if (kind === 'add' && line === 'NOT_STORED') return 'not_stored';
  if (!isStore && line === 'NOT_FOUND') return 'miss';
  if (COMMAND_ERROR.test(line)) return new Error(`the server replied ${quoteLine(line)}`);
  throw unexpected(kind, line);
}

/** The time to live in seconds, −1 without one. */
const META_LINE = /^VA \d+ t(-1|\d{1,10}) *$/;

/**
 * Reads a count and its time to live, which `get` does not return. `unsupported`: the server is older than the command,
 * 1.6.
 */
export function metaGet(key: WireKey): Request<StoredCounter | 'unsupported'> {
  return {
    isRead: true,
    text: `mg ${key} t v\r\n`,
    onLine: (line, value) => {
      if (line === 'EN') return { count: 0, timeToLive: null };
      if (line === 'ERROR') return 'unsupported';
      const timeToLive = META_LINE.exec(line)?.[1];
      if (timeToLive === undefined || value === undefined) throw unexpected('mg', line);
      return { count: storedValue(value) ?? 0, timeToLive: Number(timeToLive) < 0 ? null : Number(timeToLive) };
    },
  };
}

/** Only shows that the server answers. */
export const VERSION: Request<true> = {
  isRead: true,
  text: 'version\r\n',
  onLine: (line) => {
    if (!line.startsWith('VERSION ')) throw unexpected('version', line);
    return true;
  },
};

/** Above this, memcached takes an expiry for a date: 30 days in seconds. */
const LONGEST_RELATIVE = 2_592_000;

/**
 * A time to live of at least a second in the form of memcached: seconds, or above 30 days the date in Unix seconds. One
 * second is added, because the server's clock ticks in whole seconds: without it a counter of one second may live only
 * for milliseconds.
 */
function memcachedExpiry(seconds: number): number {
  const expiry = seconds + 1;
  return expiry > LONGEST_RELATIVE ? Math.floor(Date.now() / 1000) + expiry : expiry;
}

function unexpected(command: string, line: string): Error {
  return new Error(`in reply to ${command}, the server sent ${quoteLine(line)}`);
}

/** A line of a reply, for a message; what servers send may be anything. */
function quoteLine(line: string): string {
  return JSON.stringify(excerpt(line, 60));
}

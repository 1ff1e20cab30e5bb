import { ReplyError } from 'ioredis';
import type { Operation } from '../../../counting/operation';
import type { Script } from './script';
import { InvalidReply } from './store-error';

// Commands and replies in the Redis protocol, where the objects of ioredis for each command, or each key of a script,
// take longer than the rest.

/** An operation that is applied by itself: what remains of it once its group, if any, is decided. */
export type Step = Pick<Operation, 'key' | 'hits' | 'limit'>;

export type ScriptCommand = 'evalsha' | 'eval';

export interface ScriptArguments {
  readonly script: Script;
  /** KEYS */
  readonly steps: readonly Pick<Step, 'key'>[];
  /** ARGV */
  readonly args: readonly string[];
}

/** A script call: the command, the script, the number of keys, the keys, the arguments. */
export function encodeScriptCall(command: ScriptCommand, { script, steps, args }: ScriptArguments): string {
  let call = `*${3 + steps.length + args.length}`;
  for (const text of [command, command === 'eval' ? script.text : script.sha, String(steps.length)]) {
    call += headerOf(text) + text;
  }
  for (const { key } of steps) {
    call += headerOf(key);
    call += key;
  }
  for (const text of args) call += headerOf(text) + text;
  return `${call}\r\n`;
}

/** One INCRBY for each step. */
export function encodeAdditions(steps: readonly Step[]): string {
  let commands = '';
  let [last, end] = [0, ''];
  for (const { key, hits } of steps) {
    if (hits !== last) [last, end] = [hits, `${headerOf(String(hits))}${hits}\r\n`];
    const bytes = Buffer.byteLength(key);
    commands += ADDITIONS[bytes] ?? addition(bytes);
    commands += key;
    commands += end;
  }
  return commands;
}

/** What is written before the key of an INCRBY. */
function addition(bytes: number): string {
  return `*3\r\n$6\r\nINCRBY${header(bytes)}`;
}

/** What is written before a text, with the end of the line before it. */
function headerOf(text: string): string {
  const bytes = Buffer.byteLength(text);
  return HEADERS[bytes] ?? header(bytes);
}

function header(bytes: number): string {
  return `\r\n$${bytes}\r\n`;
}

// Headers of short texts are prepared: building one takes as long as the rest of encoding a key.
const HEADERS = Array.from({ length: 256 }, (_, bytes) => header(bytes));
const ADDITIONS = Array.from({ length: 256 }, (_, bytes) => addition(bytes));

const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const INTEGER = 0x3a;
const CR = 0x0d;
const NOTHING = Buffer.alloc(0);

/**
 * Reads the replies to the commands of a pipeline except for the last one, each of which is an integer or an error.
 * ioredis, which reads the last one, has several objects for each command, whose making takes longer than a command
 * with these replies.
 */
export class PipelineReplies {
  #missing = 0;
  #replies: (number | Error)[] = [];
  /** The beginning of a line whose end has not arrived. */
  #begun: Buffer = NOTHING;

  /** The next so many replies are of a pipeline. None is outstanding. */
  expect(count: number): void {
    this.#missing = count;
    this.#replies = [];
  }

  /** The replies that have arrived, in order. */
  get replies(): readonly (number | Error)[] {
    return this.#replies;
  }

  /**
   * Reads the next bytes of the connection, and returns those that follow the replies.
   *
   * @throws InvalidReply when a reply is of another kind
   */
  read(bytes: Buffer): Buffer {
    if (this.#missing === 0) return bytes;
    const all = this.#begun.length === 0 ? bytes : Buffer.concat([this.#begun, bytes]);
    let at = 0;
    while (this.#missing > 0) {
      const next = this.#line(all, at);
      if (next > all.length) break;
      at = next;
      this.#missing -= 1;
    }
    const rest = all.subarray(at);
    this.#begun = this.#missing === 0 ? NOTHING : rest;
    return this.#missing === 0 ? rest : NOTHING;
  }

  /**
   * Reads the line that begins here. Returns where the next one begins; a place behind the end when the line is not
   * complete.
   */
  #line(bytes: Buffer, start: number): number {
    const end = bytes.length;
    const type = bytes[start];
    if (type === INTEGER) {
      const isNegative = bytes[start + 1] === MINUS;
      let at = isNegative ? start + 2 : start + 1;
      let value = 0;
      for (; at < end; at += 1) {
        const byte = bytes[at] as number;
        if (byte < DIGIT_0 || byte > DIGIT_9) break;
        value = value * 10 + (byte - DIGIT_0);
      }
      // After the digits, CR and LF.
      if (at + 2 <= end) this.#replies.push(isNegative ? -value : value);
      return at + 2;
    }
    if (type !== MINUS && type !== undefined) throw new InvalidReply('is neither a number nor an error');
    const close = bytes.indexOf(CR, start);
    if (close < 0 || close + 2 > end) return end + 1;
    this.#replies.push(new ReplyError(bytes.toString('utf8', start + 1, close)) as Error);
    return close + 2;
  }
}

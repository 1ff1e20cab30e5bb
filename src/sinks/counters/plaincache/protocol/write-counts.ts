import type { WireKey } from './legal-key';
import { memcachedExpiry } from './memcached-expiry';
import { ProtocolError, type ReplyReader, quoteLine } from './reply-reader';

/** A command that changes a counter. */
export interface WriteCommand {
  readonly kind: 'add' | 'incr' | 'decr';
  readonly key: WireKey;
  /** What is added or subtracted; for `add`, the first value. */
  readonly hits: number;
  /** The time to live of a key that is created, in seconds. */
  readonly lifetime: number;
}

/** The outcome of one command: done, a condition that was not met, or the error line of the server. */
export type WriteOutcome = 'done' | 'not stored' | 'not found' | Error;

/** The request for these commands, in Latin-1. @param now Unix time in milliseconds */
export function writeCommands(commands: readonly WriteCommand[], now: number): string {
  let text = '';
  for (const { kind, key, hits, lifetime } of commands) {
    if (kind === 'add') {
      const value = String(hits);
      text += `add ${key} 0 ${memcachedExpiry(lifetime, now)} ${value.length}\r\n${value}\r\n`;
    } else text += `${kind} ${key} ${hits}\r\n`;
  }
  return text;
}

const NUMBER = /^\d+ *$/;
/** Errors of one command, after which the connection continues with the reply to the next one. */
const COMMAND_ERROR = /^(?:SERVER_ERROR |CLIENT_ERROR cannot increment or decrement non-numeric value)/;
const MAX_LINE = 1024;
/** The commands of one part of the replies. */
const COMMANDS_PER_PART = 1_000;

/** Reads one line for each command, in their order. */
export class OutcomesReader implements ReplyReader<readonly WriteOutcome[]> {
  readonly #commands: readonly WriteCommand[];
  readonly #outcomes: WriteOutcome[] = [];
  #text = '';

  constructor(commands: readonly WriteCommand[]) {
    this.#commands = commands;
  }

  get partsRead(): number {
    return Math.floor(this.#outcomes.length / COMMANDS_PER_PART);
  }

  read(chunk: Buffer): readonly WriteOutcome[] | undefined {
    this.#text += chunk.toString('latin1');
    let start = 0;
    for (let end = this.#text.indexOf('\r\n'); end !== -1; end = this.#text.indexOf('\r\n', start)) {
      const command = this.#commands[this.#outcomes.length];
      if (command === undefined) break;
      this.#outcomes.push(outcomeOf(command, this.#text.slice(start, end)));
      start = end + 2;
    }
    this.#text = this.#text.slice(start);
    if (this.#text.length > MAX_LINE) throw new ProtocolError('a line is too long');
    if (this.#outcomes.length < this.#commands.length) return undefined;
    if (this.#text !== '') throw new ProtocolError('bytes follow the last reply');
    return this.#outcomes;
  }

  /** The outcomes that have arrived, for a connection that fails before all have. */
  get known(): readonly WriteOutcome[] {
    return this.#outcomes;
  }
}

/** Every line is compared with what its command allows: a reply too many would otherwise be assigned to the next command. */
function outcomeOf({ kind }: WriteCommand, line: string): WriteOutcome {
  if (kind === 'add' ? line === 'STORED' : NUMBER.test(line)) return 'done';
  if (kind === 'add' && line === 'NOT_STORED') return 'not stored';
  if (kind !== 'add' && line === 'NOT_FOUND') return 'not found';
  if (COMMAND_ERROR.test(line)) return new Error(`the server replied ${quoteLine(line)}`);
  throw new ProtocolError(`in reply to ${kind}, the server sent ${quoteLine(line)}`);
}

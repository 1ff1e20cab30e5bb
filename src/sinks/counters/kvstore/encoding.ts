import type { Operation } from '../../../counting/operation';
import type { Script } from './script';

// Commands in the Redis protocol, encoded here, because an object for each one or for each key of a script takes longer than the rest.

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

// Those of short texts, because building them takes as long as the rest of encoding a key.
const HEADERS = Array.from({ length: 256 }, (_, bytes) => header(bytes));
const ADDITIONS = Array.from({ length: 256 }, (_, bytes) => addition(bytes));

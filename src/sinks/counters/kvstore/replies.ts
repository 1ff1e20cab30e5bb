import { LARGEST_COUNT } from '../../../counting/operation';
import { isWholeNumber } from '../../../text/plain-number';
import type { ScriptCommand } from './protocol';
import { InvalidReply, notAnInteger } from './store-error';

// What the commands that weir sends may reply, besides an error. Nothing of a reply is used before it is checked here:
// a server that replies with something else may have lost the order of its replies, or may not be Redis.

const LEAST_TIME = 1e15;

type Check = (reply: unknown, args: readonly (string | number)[]) => boolean;

/**
 * The single commands. Those of a pipeline are integers, and what a script replies is checked where its arguments are
 * made.
 */
const REPLIES: Readonly<Record<string, Check | undefined>> = {
  ASKING: isText,
  AUTH: isOk,
  CLUSTER: (reply) => Array.isArray(reply) && reply.every(isSlotRange),
  DECRBY: Number.isInteger,
  DEL: isWholeNumber,
  EVAL: isListOfScalars,
  EVALSHA: isListOfScalars,
  EXPIRE: isWholeNumber,
  GET: isTextOrNothing,
  INCRBY: Number.isInteger,
  INFO: isText,
  // On a connection with a subscription, a list.
  PING: (reply) => (Array.isArray(reply) ? reply[0] === 'pong' : reply === 'PONG'),
  PUBLISH: isWholeNumber,
  ROLE: (reply) => Array.isArray(reply) && typeof reply[0] === 'string',
  SCRIPT: isText,
  SELECT: isOk,
  SENTINEL: (reply, [command]) =>
    reply === null || (Array.isArray(reply) && reply.every(command === 'sentinels' ? isListOfScalars : isText)),
  SET: (reply) => isOk(reply) || reply === null,
  // −1: no expiry, −2: no key.
  TTL: (reply) => Number.isInteger(reply) && (reply as number) >= -2,
  ZCOUNT: isWholeNumber,
  ZREM: isWholeNumber,
  ZRANGEBYSCORE: (reply) => Array.isArray(reply) && reply.length % 2 === 0 && reply.every(isText),
};

/**
 * Returns the reply to a command.
 *
 * @throws InvalidReply when the command cannot have it
 */
export function checkedReply(name: string, args: readonly (string | number)[], reply: unknown): unknown {
  if (REPLIES[name]?.(reply, args) !== false) return reply;
  throw new InvalidReply(`does not fit it: ${kindOf(reply)}`, name);
}

/**
 * Checks the replies to a pipeline of commands that have integers, each an integer or an error. @throws InvalidReply
 * for another one
 */
export function checkedInteger(command: string, reply: unknown): number | Error {
  if (Number.isInteger(reply) || reply instanceof Error) return reply as number | Error;
  throw new InvalidReply(`is neither a number nor an error: ${kindOf(reply)}`, command);
}

/**
 * The values of a script's reply, each an integer or an error, with counts that saturate: the reply itself where none
 * of them has to be changed.
 *
 * @throws InvalidReply when there are others, or not as many
 */
export function checkedValues(reply: unknown, length: number, command: ScriptCommand): readonly (number | Error)[] {
  if (!Array.isArray(reply) || reply.length !== length)
    throw new InvalidReply(`does not match the call: ${kindOf(reply)} instead of a list of ${length}`, command);
  let areCounts = true;
  for (let index = 0; index < length; index += 1) {
    const value: unknown = reply[index];
    if (Number.isSafeInteger(value)) continue;
    areCounts = false;
    checkedInteger(command, value);
  }
  return areCounts ? (reply as readonly number[]) : (reply as readonly (number | Error)[]).map(stepResult);
}

/** Unix time in microseconds: from 2001 on, so that no other number of a reply is taken for one. */
export function isTime(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= LEAST_TIME && (value as number) < LARGEST_COUNT;
}

/** A port in a reply; undefined for what is none. */
export function portIn(reply: unknown): number | undefined {
  const port = Number(reply);
  return Number.isInteger(port) && port > 0 && port <= 65_535 ? port : undefined;
}

/**
 * The result for an integer reply, or for an error in its place. Counts saturate at 2^53 − 1; other programs may write
 * negative ones.
 */
export function stepResult(reply: number | Error): number | Error {
  return typeof reply === 'number' ? Math.max(-LARGEST_COUNT, Math.min(LARGEST_COUNT, reply)) : reply;
}

/** The result for the reply to GET: an absent key counts 0. */
export function readResult(reply: unknown): number | Error {
  if (reply === null) return 0;
  if (reply instanceof Error) return reply;
  return /^-?\d+$/.test(reply as string) ? stepResult(Number(reply)) : notAnInteger();
}

/** What was received instead, without its content, which may be anything. */
function kindOf(reply: unknown): string {
  if (Array.isArray(reply)) return `a list of ${reply.length}`;
  if (reply === null) return 'nothing';
  return typeof reply === 'number' ? `the number ${reply}` : 'a text';
}

function isOk(reply: unknown): boolean {
  return reply === 'OK';
}

function isText(reply: unknown): reply is string {
  return typeof reply === 'string';
}

function isTextOrNothing(reply: unknown): boolean {
  return reply === null || isText(reply);
}

function isListOfScalars(reply: unknown): boolean {
  return Array.isArray(reply) && reply.every((each) => isTextOrNothing(each) || Number.isInteger(each));
}

/** The first and the last slot, then the nodes, each a list. */
function isSlotRange(range: unknown): boolean {
  if (!Array.isArray(range)) return false;
  const [first, last, ...nodes] = range as readonly unknown[];
  return isWholeNumber(first) && isWholeNumber(last) && first <= last && nodes.every(Array.isArray);
}

import type { LimitState } from '../../../counting/algorithms/algorithm';
import { LARGEST_COUNT, type Operation, readOf } from '../../../counting/operation';
import { decidedOnRead, stopsWhenOver } from '../../../counting/read-then-decide';
import { lifetimeOf, randomPart, secondsLeft } from '../expiry';
import type { Connection } from './connection';
import type { Step } from './protocol';
import { readResult, stepResult } from './replies';
import { isReply, noScripts } from './store-error';

/** The result of one step: as {@link Count}, with the error as the server reported it. */
export type StepResult = number | LimitState | Error;

/** The results of the steps of a group, or the error of all of them. */
export type GroupResult = readonly StepResult[] | Error;

/** Sends one command. Resolves with its reply, which may be an error; rejects when the connection is lost. */
export type SendCommand = (name: string, ...args: readonly string[]) => Promise<unknown>;

/**
 * @param isAsking the slot of the keys is being imported by this node (ASK redirect): each command is preceded by
 * ASKING
 */
export function commandsOn(connection: Connection, isAsking: boolean): SendCommand {
  return async (name, ...args) => {
    if (isAsking) asking(connection);
    try {
      return await connection.send(name, ...args);
    } catch (error) {
      if (isReply(error)) return error;
      throw error;
    }
  };
}

export function asking(connection: Connection): void {
  // An error of ASKING shows in the reply to the command that follows.
  connection.send('ASKING').catch(() => undefined);
}

export interface CommandOptions {
  /** EXPIRATION_JITTER_MAX_SECONDS */
  readonly jitter: number;
  /** The slots of the keys are being imported by this node (ASK redirect): each command is preceded by ASKING. */
  readonly isAsking: boolean;
}

/**
 * Counts groups of operations without scripts, for servers that reject them, and therefore not atomically. Increments
 * and reads go out in one write; EXPIRE and corrections follow where the replies require them. Rejects when the
 * connection is lost; if that happens in between, a key is left without expiry until its next hit.
 */
export async function countByCommands(
  connection: Connection,
  groups: readonly (readonly Operation[])[],
  options: CommandOptions,
): Promise<readonly GroupResult[]> {
  const batch = joined(groups);
  const steps = batch.some(stopsWhenOver)
    ? decidedOnRead(batch, await applySteps(connection, batch.map(readOf), options))
    : batch;
  const results = await applySteps(connection, steps, options);
  return splitAs(groups, results);
}

/** All elements in their order. With a loop, because `flat` and `flatMap` take 0.15 µs for each of them. */
export function joined<T>(groups: readonly (readonly T[])[]): readonly T[] {
  if (groups.length === 1) return groups[0]!;
  const all: T[] = [];
  for (const group of groups) for (const each of group) all.push(each);
  return all;
}

/** The results of each group, of those of all in their order. */
export function splitAs<T>(groups: readonly (readonly unknown[])[], results: readonly T[]): readonly (readonly T[])[] {
  if (groups.length === 1) return [results];
  let from = 0;
  return groups.map(({ length }) => results.slice(from, (from += length)));
}

async function applySteps(
  connection: Connection,
  steps: readonly Step[],
  { jitter, isAsking }: CommandOptions,
): Promise<readonly StepResult[]> {
  const send = commandsOn(connection, isAsking);
  const results: StepResult[] = [];
  for (const run of runsOf(steps)) {
    const pending = connection.inOneWrite(() => run.map((step) => apply(send, step, jitter)));
    for (const result of await Promise.all(pending)) results.push(result);
  }
  return results;
}

/**
 * Runs of steps that can go out in one write: increments and reads together, each subtraction alone because it reads
 * first.
 */
function runsOf(steps: readonly Step[]): readonly (readonly Step[])[] {
  const runs: Step[][] = [];
  let run: Step[] | undefined;
  for (const step of steps) {
    if (run === undefined || step.hits < 0) runs.push((run = [step]));
    else run.push(step);
    if (step.hits < 0) run = undefined;
  }
  return runs;
}

function apply(send: SendCommand, step: Step, jitter: number): Promise<StepResult> {
  // Algorithms change several numbers atomically, for which Redis has no commands.
  if (step.limit.algorithm !== undefined) return Promise.resolve(noScripts());
  if (step.hits < 0) return subtract(send, step, jitter);
  return step.hits === 0 ? send('GET', step.key).then(readResult) : add(send, step, jitter);
}

async function add(send: SendCommand, step: Step, jitter: number): Promise<StepResult> {
  const { key, hits } = step;
  const [reply, timeToLive] = await Promise.all([send('INCRBY', key, String(hits)), send('TTL', key)]);
  return added(send, step, { reply, expiry: expiryOf(step, timeToLive, jitter) });
}

/** The expiry, in seconds, of a key that has none or one that is too early; undefined: it keeps what it has. */
export function expiryOf({ limit }: Step, timeToLive: unknown, jitter: number): number | undefined {
  const expiresEarly = typeof timeToLive === 'number' && timeToLive < secondsLeft(limit);
  return expiresEarly ? lifetimeOf(limit) + randomPart(jitter) : undefined;
}

/** The result of INCRBY. @property expiry that the key gets, in seconds; undefined: it keeps what it has */
interface Added {
  readonly reply: unknown;
  readonly expiry: number | undefined;
}

export async function added(send: SendCommand, { key }: Step, { reply, expiry }: Added): Promise<StepResult> {
  // The value, which another program has written, and its sum with the hits are beyond 2^53 − 1.
  const isOverflow = isReply(reply) && reply.message.includes('would overflow');
  // A key that cannot be counted on is not a counter: with an expiry, the data of another program would be removed.
  const isCounter = isOverflow || typeof reply === 'number';
  if (isCounter && expiry !== undefined) await send('EXPIRE', key, String(expiry));
  if (isOverflow) return LARGEST_COUNT;
  // A count that has passed 2^53 − 1 is set back to it. Additions of other processes in between are not lost, because
  // they leave it there, too; and no process reads less. If the server rejects the command, the larger value stays, and
  // counts 2^53 − 1.
  if (typeof reply === 'number' && reply > LARGEST_COUNT) {
    await send('SET', key, String(LARGEST_COUNT), 'XX', 'KEEPTTL');
  }
  return stepResult(reply as number | Error);
}

async function subtract(send: SendCommand, { key, hits, limit }: Step, jitter: number): Promise<StepResult> {
  const stored = readResult(await send('GET', key));
  if (typeof stored !== 'number' || stored === 0) return stored;
  const left = stepResult((await send('DECRBY', key, String(Math.min(-hits, stored)))) as number | Error);
  if (typeof left !== 'number' || left >= 0) return left;
  // Another process subtracted at the same time, or the key expired between the two commands: back to 0.
  return add(send, { key, hits: -left, limit }, jitter);
}

import type { LimitState } from '../../../counting/algorithms/algorithm';
import { type Counted, LARGEST_COUNT, type Operation, readOf } from '../../../counting/operation';
import { decidedOnRead, stopsWhenOver } from '../../../counting/read-then-decide';
import type { CounterAdministration, StoredCounter } from '../../../streams/ports/counter-administration';
import { lifetimeOf, randomPart, secondsLeft } from '../expiry';
import type { Connection } from './connection';
import { type Step, encodeAdditions } from './encoding';
import { isReply, noScripts, notAnInteger, replyCode } from './store-error';

/** The result of one step: as {@link Count}, with the error as the server reported it. */
export type StepResult = number | LimitState | Error;

/** The results of the steps of a group, or the error of all of them. */
export type GroupResult = readonly StepResult[] | Error;

/** Sends one command. Resolves with its reply, which may be an error; rejects when the connection is lost. */
export type SendCommand = (name: string, ...args: readonly string[]) => Promise<unknown>;

/** @param isAsking the slot of the keys is being imported by this node (ASK redirect): each command is preceded by ASKING */
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

/** The result for an integer reply, or for an error in its place. Counts saturate at 2^53 − 1. */
export function stepResult(reply: unknown): number | Error {
  if (typeof reply === 'number') return Math.min(LARGEST_COUNT, reply);
  return reply instanceof Error ? reply : notAnInteger();
}

/** The result for the reply to GET: an absent key counts 0. */
function readResult(reply: unknown): number | Error {
  if (reply === null) return 0;
  if (reply instanceof Error) return reply;
  return typeof reply === 'string' && /^-?\d+$/.test(reply) ? stepResult(Number(reply)) : notAnInteger();
}

/** Whether all are counts. */
export function areCounts(results: readonly unknown[]): results is readonly number[] {
  return results.every((result) => typeof result === 'number');
}

export interface CommandOptions {
  /** EXPIRATION_JITTER_MAX_SECONDS */
  readonly jitter: number;
  /** The slots of the keys are being imported by this node (ASK redirect): each command is preceded by ASKING. */
  readonly isAsking: boolean;
}

/**
 * Counts groups of operations without scripts, for servers that reject them, and therefore not atomically. Increments and reads go out
 * in one write; EXPIRE and corrections follow where the replies require them. Rejects when the connection is lost; if that happens in
 * between, a key is left without expiry until its next hit.
 */
export async function countByCommands(
  connection: Connection,
  groups: readonly (readonly Operation[])[],
  options: CommandOptions,
): Promise<readonly GroupResult[]> {
  const batch = groups.flat();
  const steps = batch.some(stopsWhenOver)
    ? decidedOnRead(batch, await applySteps(connection, batch.map(readOf), options))
    : batch;
  const results = await applySteps(connection, steps, options);
  return splitAs(groups, results);
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

/** Runs of steps that can go out in one write: increments and reads together, each subtraction alone because it reads first. */
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
  // They have no commands that are atomic, which is what they are about.
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
function expiryOf({ limit: { windowSeconds } }: Step, timeToLive: unknown, jitter: number): number | undefined {
  const expiresEarly = typeof timeToLive === 'number' && timeToLive < secondsLeft(windowSeconds);
  return expiresEarly ? lifetimeOf(windowSeconds) + randomPart(jitter) : undefined;
}

/**
 * Adds to keys that are known to have an expiry, with a command for each in one write, which costs the server a third less than a script
 * call. Resolves with the counts and the errors of single keys, or the error of all, which is the loss of the connection.
 *
 * @param steps a single one if an ASKING has to precede it, or the connection is not {@link Connection.isQuiet}
 */
export async function addToKnown(
  connection: Connection,
  steps: readonly Step[],
  { jitter, isAsking }: CommandOptions,
): Promise<GroupResult> {
  const send = commandsOn(connection, isAsking);
  try {
    if (isAsking) asking(connection);
    const replies = await connection.sendPipeline('incrby', encodeAdditions(steps), steps.length);
    // Of its final length, and without a promise for each: mostly there is nothing to do.
    const results = new Array<StepResult>(steps.length);
    for (let index = 0; index < steps.length; index += 1) {
      const [step, reply] = [steps[index] as Step, replies[index]];
      const isUsual = typeof reply === 'number' && reply !== step.hits && reply <= LARGEST_COUNT;
      results[index] = isUsual ? reply : await examined(step, reply);
    }
    return results;
  } catch (error) {
    return error as Error;
  }

  async function examined(step: Step, reply: unknown): Promise<StepResult> {
    // The key may have been created: another program has removed it.
    const expiry = reply === step.hits ? expiryOf(step, await send('TTL', step.key), jitter) : undefined;
    return added(send, step, { reply, expiry });
  }
}

/** The result of INCRBY. @property expiry that the key gets, in seconds; undefined: it keeps what it has */
interface Added {
  readonly reply: unknown;
  readonly expiry: number | undefined;
}

async function added(send: SendCommand, { key }: Step, { reply, expiry }: Added): Promise<StepResult> {
  // The value, which another program has written, and its sum with the hits are beyond 2^53 − 1.
  const isOverflow = isReply(reply) && reply.message.includes('would overflow');
  // A key that cannot be counted on is not a counter: with an expiry, the data of another program would be removed.
  const isCounter = isOverflow || typeof reply === 'number';
  if (isCounter && expiry !== undefined) await send('EXPIRE', key, String(expiry));
  if (isOverflow) return LARGEST_COUNT;
  // A count that has passed 2^53 − 1 is set back to it. Additions of other processes in between are not lost, because they leave it
  // there, too; and no process reads less. If the server rejects the command, the larger value stays, and counts 2^53 − 1.
  if (typeof reply === 'number' && reply > LARGEST_COUNT) {
    await send('SET', key, String(LARGEST_COUNT), 'XX', 'KEEPTTL');
  }
  return stepResult(reply);
}

async function subtract(send: SendCommand, { key, hits, limit }: Step, jitter: number): Promise<StepResult> {
  const stored = readResult(await send('GET', key));
  if (typeof stored !== 'number' || stored === 0) return stored;
  const left = stepResult(await send('DECRBY', key, String(Math.min(-hits, stored))));
  if (typeof left !== 'number' || left >= 0) return left;
  // Another process subtracted at the same time, or the key expired between the two commands: back to 0.
  return add(send, { key, hits: -left, limit }, jitter);
}

export interface CommandRunner {
  /**
   * Runs commands on one key, on the server that holds it. They are run again from the first one when the key has moved; an error
   * reply that they throw is the error of this call alone.
   *
   * Rejects with a DecisionError.
   */
  run<T>(key: string, commands: (send: SendCommand) => Promise<T>): Promise<T>;
}

/**
 * Administers counters with plain commands, which every server allows. They are not atomic: an addition between them is counted before
 * or after the change, never lost, except in the count that is returned.
 *
 * @param storeOf the instance that has a counter
 */
export function counterAdministration(
  storeOf: (counter: Counted) => CommandRunner,
  jitter: number,
): CounterAdministration {
  /** @returns the counter before the change */
  function change(counter: Counted, count: number | undefined): Promise<StoredCounter> {
    const { key, limit } = counter;
    return storeOf(counter).run(key, async (send) => {
      const before = await read(send, key, { invalidAsZero: true });
      if (count === undefined) checked(await send('DEL', key));
      else
        await set(send, key, {
          count: String(count),
          expiry: String(lifetimeOf(limit.windowSeconds) + randomPart(jitter)),
        });
      return before;
    });
  }
  return {
    readCounter: (counter) => storeOf(counter).run(counter.key, (send) => read(send, counter.key)),
    setCounter: (counter, count) => change(counter, count),
    clearCounter: (counter) => change(counter, undefined),
  };
}

/** @param invalidAsZero a value that is no count counts as 0: it is about to be set or cleared */
async function read(
  send: SendCommand,
  key: string,
  { invalidAsZero }: { readonly invalidAsZero: boolean } = { invalidAsZero: false },
): Promise<StoredCounter> {
  const [reply, timeToLive] = await Promise.all([send('GET', key), send('TTL', key)]);
  const count = readResult(reply);
  const isNoCount = count instanceof Error && (!isReply(count) || replyCode(count) === 'WRONGTYPE');
  if (count instanceof Error && !(invalidAsZero && isNoCount)) throw count;
  const seconds = Number(checked(timeToLive));
  return { count: typeof count === 'number' ? Math.max(0, count) : 0, timeToLive: seconds >= 0 ? seconds : null };
}

async function set(
  send: SendCommand,
  key: string,
  { count, expiry }: { readonly count: string; readonly expiry: string },
): Promise<void> {
  if (checked(await send('SET', key, count, 'XX', 'KEEPTTL')) !== null) {
    if (checked(await send('TTL', key)) === -1) checked(await send('EXPIRE', key, expiry));
    return;
  }
  const isCreated = checked(await send('SET', key, count, 'NX', 'EX', expiry)) !== null;
  // Another process has created it in the meantime.
  if (!isCreated) checked(await send('SET', key, count, 'XX', 'KEEPTTL'));
}

/** @throws the error that the server replied with */
function checked(reply: unknown): unknown {
  if (isReply(reply)) throw reply;
  return reply;
}

import { LARGEST_COUNT, type Operation, groupLength } from '../../../counting/operation';
import {
  type CommandOptions,
  type GroupResult,
  type SendCommand,
  type StepResult,
  added,
  asking,
  commandsOn,
  countByCommands,
  expiryOf,
  joined,
  splitAs,
} from './commands';
import type { Deadline } from '../../../streams/deadline';
import type { Connection } from './connection';
import { CountCall, type CountOptions, reservesHits } from './count-call';
import { type ScriptCommand, type Step, encodeAdditions, encodeScriptCall } from './protocol';
import type { Pool } from './pool';
import type { Script } from './script';
import { isReply } from './store-error';

/**
 * Most keys of one script call, so that no call blocks the store for long: as measured, 256 keys take Redis about half
 * a millisecond, and larger calls cost the same per key.
 */
const KEYS_PER_CALL = 256;

type Groups = readonly (readonly Operation[])[];

/**
 * Counts groups of operations, all in one write: each in one script call, and therefore atomically; with plain commands
 * when all that is to do is to add to keys that have an expiry, or the server rejects scripts. Resolves with the
 * results of each group, or the error of its call, which may be the loss of the connection.
 *
 * Rejects when a reply does not match its call: then none on this connection does.
 */
export async function count(
  connection: Connection,
  groups: Groups,
  options: CountOptions,
): Promise<readonly GroupResult[]> {
  if (connection.scriptRejection !== undefined) return countByCommands(connection, groups, options);
  options.known.forgetOld();
  options.knownStates.forgetOld();
  const additions = knownAdditions(groups, options);
  if (additions?.length === 1 || (additions !== undefined && connection.isQuiet && !options.isAsking)) {
    const results = await addToKnown(connection, additions, options);
    return results instanceof Error ? groups.map(() => results) : splitAs(groups, results);
  }
  const results = await callScripts('evalsha', groups);
  // Neither NOSCRIPT nor a rejection has counted anything, so these groups, and no others, are sent again.
  await replace(isUnknownScript, (unknown) => callScripts('eval', unknown));
  connection.scriptRejection = results.find(isRejected);
  await replace(isRejected, (rejected) => countByCommands(connection, rejected, options));
  return results;

  /**
   * `evalsha`: by their hash, which fails with NOSCRIPT when the server has lost the script; `eval`: by its text, which
   * also loads it.
   */
  function callScripts(command: ScriptCommand, called: Groups): Promise<GroupResult[]> {
    return Promise.all(connection.inOneWrite(() => called.map((group) => callScript(command, group))));
  }
  function callScript(command: ScriptCommand, group: readonly Operation[]): Promise<GroupResult> {
    const call = new CountCall(group, options);
    if (options.isAsking) asking(connection);
    const replied = connection.sendEncoded(command, encodeScriptCall(command, call));
    return replied.then(
      (reply) => call.read(reply, command),
      (error: Error) => error,
    );
  }
  async function replace(
    isUncounted: (result: GroupResult) => boolean,
    send: (groups: Groups) => Promise<readonly GroupResult[]>,
  ): Promise<void> {
    const indices = results.flatMap((result, index) => (isUncounted(result) ? [index] : []));
    if (indices.length === 0) return;
    const sent = await send(indices.map((index) => groups[index]!));
    for (const [position, index] of indices.entries()) results[index] = sent[position]!;
  }
}

export interface CountedWindow {
  readonly groups: Groups;
  readonly options: CountOptions;
  readonly deadline: Deadline;
}

/**
 * Counts a window on a connection of a pool; it is sent before this returns, if one is free. `read` is called with the
 * results before the connection is given back, which is cut if it throws. Rejects with a DecisionError.
 */
export async function countOn<T>(
  pool: Pool,
  { groups, options, deadline }: CountedWindow,
  read: (results: readonly GroupResult[], connection: Connection) => T,
): Promise<T> {
  const taken = pool.take(deadline);
  const connection = taken instanceof Promise ? await taken : taken;
  try {
    return read(await count(connection, groups, options), connection);
  } catch (error) {
    throw pool.failed(error, connection, deadline);
  } finally {
    pool.give(connection, deadline);
  }
}

/** All operations, if all there is to do is to add to keys that have an expiry, which plain commands do. */
function knownAdditions(groups: Groups, { known }: CountOptions): readonly Operation[] | undefined {
  for (const group of groups) {
    for (const operation of group) {
      const { hits, limit } = operation;
      if (hits <= 0 || limit.algorithm !== undefined || operation.group !== undefined || reservesHits(operation))
        return undefined;
      if (!known.has(operation)) return undefined;
    }
  }
  return joined(groups);
}

/**
 * Adds to keys that are known to have an expiry, with a command for each in one write, which costs the server a third
 * less than a script call. Resolves with the counts and the errors of single keys, or the error of all, which is the
 * loss of the connection.
 *
 * @param steps a single one if an ASKING has to precede it, or the connection is not {@link Connection.isQuiet}
 */
async function addToKnown(
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
      const [step, reply] = [steps[index] as Step, replies[index] as number | Error];
      const isUsual = typeof reply === 'number' && reply > step.hits && reply <= LARGEST_COUNT;
      results[index] = isUsual ? reply : await examined(step, reply);
    }
    return results;
  } catch (error) {
    return error as Error;
  }

  async function examined(step: Step, reply: number | Error): Promise<StepResult> {
    // The key may have been created: another program has removed it.
    const expiry = reply === step.hits ? expiryOf(step, await send('TTL', step.key), jitter) : undefined;
    return added(send, step, { reply, expiry });
  }
}

/** Splits a window into groups of one script call each; those of a common group stay together. */
export function callsOf(batch: readonly Operation[]): Groups {
  if (batch.length <= KEYS_PER_CALL) return [batch];
  const calls: Operation[][] = [];
  let call: Operation[] = [];
  for (let index = 0; index < batch.length;) {
    const length = groupLength(batch, index);
    if (call.length > 0 && call.length + length > KEYS_PER_CALL) {
      calls.push(call);
      call = [];
    }
    for (const end = index + length; index < end; index += 1) call.push(batch[index] as Operation);
  }
  calls.push(call);
  return calls;
}

/**
 * Calls a script by its hash, and by its text where the server does not know it. Returns the reply, which may be an
 * error of {@link isRejected}.
 *
 * @throws any other error that the server replied with
 */
export async function runScript(send: SendCommand, called: Script, args: readonly string[]): Promise<unknown> {
  let reply = await send('EVALSHA', called.sha, ...args);
  if (isUnknownScript(reply)) reply = await send('EVAL', called.text, ...args);
  if (isReply(reply) && !isRejected(reply)) throw reply;
  return reply;
}

/** Whether the server does not know a script by its hash. */
function isUnknownScript(result: unknown): boolean {
  return isReply(result) && result.message.startsWith('NOSCRIPT');
}

/**
 * Whether the server rejects scripts altogether: the user lacks the permission, or the command does not exist. Not when
 * the script ran and a command or key in it was denied.
 */
export function isRejected(result: unknown): result is Error {
  return isReply(result) && SCRIPT_REJECTION.test(result.message);
}

const SCRIPT_REJECTION = /^NOPERM .*'(?:eval|evalsha)' command|^ERR unknown command ['`](?:eval|evalsha)['`]/i;

import { LARGEST_COUNT } from '../../../../limiter/counter-operation';
import type { Connection } from '../connections/connection';
import { isReply } from '../connections/store-error';
import { type Expiry, secondsLeft } from '../../expiry';
import type { Step } from '../../guarded-batch';
import { type StepResult, readResult, stepResult } from './step-result';

/** Sends one command. Resolves with its reply, which may be an error; rejects when the connection is lost. */
type Send = (name: string, ...args: readonly string[]) => Promise<unknown>;

export interface CommandOptions {
  readonly expiry: Expiry;
  /** The slot of the keys is being imported by this node (ASK redirect): each command is preceded by ASKING. */
  readonly isAsking?: boolean;
}

/**
 * Applies steps without scripts, for servers that reject them, and therefore not atomically. Increments and reads go out in
 * one write; EXPIRE and corrections follow where the replies require them. A connection that is lost in between leaves a key
 * without expiry until its next hit.
 */
export async function countByCommands(
  connection: Connection,
  steps: readonly Step[],
  { expiry, isAsking = false }: CommandOptions,
): Promise<readonly StepResult[]> {
  const send: Send = async (name, ...args) => {
    // An error of ASKING shows in the reply to the command that follows.
    if (isAsking) connection.send('ASKING').catch(() => undefined);
    try {
      return await connection.send(name, ...args);
    } catch (error) {
      if (isReply(error)) return error;
      throw error;
    }
  };
  const results: StepResult[] = [];
  for (const run of runsOf(steps)) {
    const [first] = run;
    if (first !== undefined && first.hits < 0) {
      results.push(await subtract(send, first, expiry));
      continue;
    }
    const pending = connection.inOneWrite(() =>
      run.map((step) => (step.hits === 0 ? read(send, step) : add(send, step, expiry))),
    );
    for (const result of await Promise.all(pending)) results.push(result);
  }
  return results;
}

async function read(send: Send, { key }: Step): Promise<StepResult> {
  return readResult(await send('GET', key));
}

async function add(send: Send, { key, hits, windowSeconds }: Step, expiry: Expiry): Promise<StepResult> {
  const [reply, timeToLive] = await Promise.all([send('INCRBY', key, String(hits)), send('TTL', key)]);
  // The value, which another program has written, and its sum with the hits are beyond 2^53 − 1.
  const isOverflow = isReply(reply) && reply.message.includes('would overflow');
  // A key that cannot be counted on is not a counter: with an expiry, the data of another program would be removed.
  const isCounter = isOverflow || typeof reply === 'number';
  const expiresEarly = typeof timeToLive === 'number' && timeToLive < secondsLeft(windowSeconds);
  if (isCounter && expiresEarly) await send('EXPIRE', key, String(expiry.of(windowSeconds)));
  if (isOverflow) return LARGEST_COUNT;
  if (typeof reply === 'number' && reply > LARGEST_COUNT) await saturate(send, key);
  return stepResult(reply);
}

/**
 * Sets a count that has passed 2^53 − 1 back to it. Additions of other processes in between are not lost, because they leave it
 * there, too; and no process reads less. If the server rejects the command, the larger value stays, and counts 2^53 − 1.
 */
async function saturate(send: Send, key: string): Promise<void> {
  await send('SET', key, String(LARGEST_COUNT), 'XX', 'KEEPTTL');
}

async function subtract(send: Send, { key, hits, windowSeconds }: Step, expiry: Expiry): Promise<StepResult> {
  const stored = readResult(await send('GET', key));
  if (typeof stored !== 'number' || stored === 0) return stored;
  const left = stepResult(await send('DECRBY', key, String(Math.min(-hits, stored))));
  if (typeof left !== 'number' || left >= 0) return left;
  // Another process subtracted at the same time, or the key expired between the two commands: back to 0.
  return add(send, { key, hits: -left, windowSeconds }, expiry);
}

/**
 * Runs of steps that can go out in one write: increments and reads together, each subtraction alone because it reads first.
 */
function runsOf(steps: readonly Step[]): readonly (readonly Step[])[] {
  const runs: Step[][] = [];
  let run: Step[] | undefined;
  for (const step of steps) {
    if (step.hits < 0) {
      runs.push([step]);
      run = undefined;
    } else if (run === undefined) {
      runs.push((run = [step]));
    } else {
      run.push(step);
    }
  }
  return runs;
}

import type { Connection } from '../connections/connection';
import type { Expiry } from './expiry';
import type { Step } from './guards';
import { type Outcome, outcomeOf, storedOutcomeOf } from './outcome';
import { isReply } from '../connections/store-error';

/** One command of many; an error reply is its answer, a lost connection is thrown. */
type Ask = (name: string, ...args: readonly string[]) => Promise<unknown>;

/**
 * Takes steps without scripts, where the server refuses them: additions and reads in one write, and a second one for what
 * turns out to be left to do. A connection that is lost between leaves a key without expiry until its next hit.
 *
 * @param isAsking the slot of the keys is moving here (ASK): each command says that it knows
 */
export async function countByCommands(
  connection: Connection,
  steps: readonly Step[],
  expiry: Expiry,
  isAsking = false,
): Promise<readonly Outcome[]> {
  const ask: Ask = async (name, ...args) => {
    // What is wrong with it, the command behind it says.
    if (isAsking) connection.send('ASKING').catch(() => undefined);
    try {
      return await connection.send(name, ...args);
    } catch (error) {
      if (isReply(error)) return error;
      throw error;
    }
  };
  const outcomes: Outcome[] = [];
  for (const run of runsOf(steps)) {
    const [first] = run;
    if (first !== undefined && first.hits < 0) {
      outcomes.push(await takeAway(ask, first, expiry));
      continue;
    }
    const asked = connection.together(() =>
      run.map((step) => (step.hits === 0 ? read(ask, step) : add(ask, step, expiry))),
    );
    for (const outcome of await Promise.all(asked)) outcomes.push(outcome);
  }
  return outcomes;
}

async function read(ask: Ask, { key }: Step): Promise<Outcome> {
  return storedOutcomeOf(await ask('GET', key));
}

async function add(ask: Ask, { key, hits, windowSeconds }: Step, expiry: Expiry): Promise<Outcome> {
  const [reply, timeToLive] = await Promise.all([ask('INCRBY', key, String(hits)), ask('TTL', key)]);
  if (timeToLive === -1) await ask('EXPIRE', key, String(expiry.of(windowSeconds)));
  if (typeof reply === 'number' && reply > Number.MAX_SAFE_INTEGER) await ask('DECRBY', key, String(hits));
  return outcomeOf(reply);
}

async function takeAway(ask: Ask, { key, hits, windowSeconds }: Step, expiry: Expiry): Promise<Outcome> {
  const stored = storedOutcomeOf(await ask('GET', key));
  if (typeof stored !== 'number' || stored === 0) return stored;
  const left = outcomeOf(await ask('DECRBY', key, String(Math.min(-hits, stored))));
  if (typeof left !== 'number' || left >= 0) return left;
  // Others took away at the same time, or the key expired between.
  return add(ask, { key, hits: -left, windowSeconds }, expiry);
}

/** Steps that can go out together: all that add or read; one that takes away stands alone, because it reads first. */
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

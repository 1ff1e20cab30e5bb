import type { CounterOperation } from '../../../../limiter/counter-operation';
import type { Connection } from '../connections/connection';
import { type Expiry, secondsLeft } from '../../expiry';
import { type Step, groupLength } from '../../guarded-batch';
import type { KnownExpiries } from './known-expiries';
import { type ScriptArguments, runScript } from './run-script';
import { COUNT, GUARDED_COUNT } from './scripts';
import { type StepResult, areCounts, scriptResults } from './step-result';

/**
 * Most keys of one script call, so that no call blocks the store for long: as measured, 256 keys take Redis about half a
 * millisecond, and larger calls cost the same per key.
 */
const KEYS_PER_CALL = 256;

/** What the expiries of keys are set by. */
export interface Expiries {
  readonly expiry: Expiry;
  readonly knownExpiries: KnownExpiries;
}

/** Applies one part of a window atomically, in one script call. Rejects when the call as a whole failed. */
export async function countByScript(
  connection: Connection,
  part: readonly CounterOperation[],
  expiries: Expiries,
): Promise<readonly StepResult[]> {
  if (part.some(({ guard }) => guard !== undefined)) {
    const argument = guardedCountArgument(part, expiries.expiry);
    return scriptResults(await runScript(connection, GUARDED_COUNT, { keys: part, argument }), part.length);
  }
  const call = countCall(part, expiries);
  return countResults(await runScript(connection, COUNT, call), call, expiries);
}

/** The results for the reply to a call of {@link COUNT}. */
export function countResults(
  reply: unknown,
  { keys, examined }: CountCall,
  { knownExpiries }: Expiries,
): readonly StepResult[] {
  const results = scriptResults(reply, keys.length);
  if (areCounts(results)) knownExpiries.add(examined);
  return results;
}

/** Splits a window into parts of one script call each; the operations of a guard stay in one part. */
export function partsOf(batch: readonly CounterOperation[]): readonly (readonly CounterOperation[])[] {
  if (batch.length <= KEYS_PER_CALL) return [batch];
  const parts: CounterOperation[][] = [];
  let part: CounterOperation[] = [];
  for (let index = 0; index < batch.length;) {
    const length = groupLength(batch, index);
    if (part.length > 0 && part.length + length > KEYS_PER_CALL) {
      parts.push(part);
      part = [];
    }
    for (const end = index + length; index < end; index += 1) part.push(batch[index] as CounterOperation);
  }
  parts.push(part);
  return parts;
}

/** A call of {@link COUNT}. */
export interface CountCall extends ScriptArguments {
  /** The steps for which the script examines the expiry of their key. */
  readonly examined: readonly Step[];
}

export function countCall(steps: readonly Step[], { expiry, knownExpiries }: Expiries): CountCall {
  knownExpiries.forgetOld();
  const examined: Step[] = [];
  let json = `[${expiry.bound},${expiry.randomPart()}`;
  let run: Step | undefined;
  let isRunKnown = false;
  for (let index = 0; index < steps.length; index += 1) {
    const step = steps[index] as Step;
    const isKnown = knownExpiries.has(step);
    if (!isKnown) examined.push(step);
    if (run?.hits === step.hits && run.windowSeconds === step.windowSeconds && isRunKnown === isKnown) continue;
    run = step;
    isRunKnown = isKnown;
    json += `,${index + 1},"${step.hits}",${step.windowSeconds},${secondsLeft(step.windowSeconds)},${isKnown ? 1 : 0}`;
  }
  return { keys: steps, argument: `${json}]`, examined };
}

/** ARGV[1] of {@link GUARDED_COUNT}. */
function guardedCountArgument(operations: readonly CounterOperation[], expiry: Expiry): string {
  let json = '[';
  for (const [index, operation] of operations.entries()) {
    const { hits, windowSeconds, limit } = operation;
    const group = groupLength(operations, index);
    json += `"${hits}",${expiry.of(windowSeconds)},${secondsLeft(windowSeconds)},${limit},${group},`;
  }
  return `${json.slice(0, -1)}]`;
}

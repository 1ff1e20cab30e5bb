import type { CounterOperation } from '../../../../limiter/counter-operation';
import type { Connection } from '../connections/connection';
import type { Expiry } from '../../expiry';
import { type Step, groupLength } from '../../guarded-batch';
import { runScript } from './run-script';
import { COUNT, GUARDED_COUNT } from './scripts';
import { type StepResult, scriptResults } from './step-result';

/**
 * Most keys of one script call, so that no call blocks the store for long: as measured, 256 keys take Redis about half a
 * millisecond, and larger calls cost the same per key.
 */
const KEYS_PER_CALL = 256;

/** Applies one part of a window atomically, in one script call. Rejects when the call as a whole failed. */
export async function countByScript(
  connection: Connection,
  part: readonly CounterOperation[],
  expiry: Expiry,
): Promise<readonly StepResult[]> {
  const isGuarded = part.some(({ guard }) => guard !== undefined);
  const keys = part.map(({ key }) => key);
  const reply = isGuarded
    ? await runScript(connection, GUARDED_COUNT, { keys, argument: guardedCountArgument(part, expiry) })
    : await runScript(connection, COUNT, { keys, argument: countArgument(part, expiry) });
  return scriptResults(reply, part.length);
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

/** ARGV[1] of {@link COUNT}. */
export function countArgument(steps: readonly Pick<Step, 'hits' | 'windowSeconds'>[], expiry: Expiry): string {
  let json = '[';
  for (const { hits, windowSeconds } of steps) json += `"${hits}",${expiry.of(windowSeconds)},`;
  return `${json.slice(0, -1)}]`;
}

/** ARGV[1] of {@link GUARDED_COUNT}. */
function guardedCountArgument(operations: readonly CounterOperation[], expiry: Expiry): string {
  let json = '[';
  for (const [index, { hits, windowSeconds, limit }] of operations.entries()) {
    json += `"${hits}",${expiry.of(windowSeconds)},${limit},${groupLength(operations, index)},`;
  }
  return `${json.slice(0, -1)}]`;
}

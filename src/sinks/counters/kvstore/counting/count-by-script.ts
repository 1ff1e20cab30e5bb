import type { CounterOperation } from '../../../../limiter/counter-operation';
import type { Connection } from '../connections/connection';
import type { Expiry } from './expiry';
import { tiedFrom } from './guards';
import { type Outcome, outcomesOf } from './outcome';
import { COUNT, GUARDED_COUNT } from './scripts';
import { runScript } from './run-script';

/**
 * Keys of one script call at the most, so that none holds the store long: measured, 256 keys take Redis about half a
 * millisecond, and larger calls are no cheaper by the key.
 */
export const KEYS_PER_CALL = 256;

/** Takes one part of a window in one script call, atomically. Rejects when the call as a whole failed. */
export async function countByScript(
  connection: Connection,
  part: readonly CounterOperation[],
  expiry: Expiry,
): Promise<readonly Outcome[]> {
  const isGuarded = part.some(({ guard }) => guard !== undefined);
  const keys = part.map(({ key }) => key);
  const reply = isGuarded
    ? await runScript(connection, GUARDED_COUNT, keys, guardedSteps(part, expiry))
    : await runScript(connection, COUNT, keys, steps(part, expiry));
  return outcomesOf(reply, part.length);
}

/** Cuts a window into parts of one call each; operations that a guard ties together stay together. */
export function partsOf(batch: readonly CounterOperation[]): readonly (readonly CounterOperation[])[] {
  if (batch.length <= KEYS_PER_CALL) return [batch];
  const parts: CounterOperation[][] = [];
  let part: CounterOperation[] = [];
  for (let index = 0; index < batch.length;) {
    const tied = tiedFrom(batch, index);
    if (part.length > 0 && part.length + tied > KEYS_PER_CALL) {
      parts.push(part);
      part = [];
    }
    for (const last = index + tied; index < last; index += 1) part.push(batch[index] as CounterOperation);
  }
  parts.push(part);
  return parts;
}

/** The script's argument for operations without guard: see {@link COUNT}. */
export function steps(
  operations: readonly { readonly hits: number; readonly windowSeconds: number }[],
  expiry: Expiry,
): string {
  let text = '[';
  for (const { hits, windowSeconds } of operations) text += `"${hits}",${expiry.of(windowSeconds)},`;
  return `${text.slice(0, -1)}]`;
}

function guardedSteps(operations: readonly CounterOperation[], expiry: Expiry): string {
  let text = '[';
  for (const [index, { hits, windowSeconds, limit }] of operations.entries()) {
    text += `"${hits}",${expiry.of(windowSeconds)},${limit},${tiedFrom(operations, index)},`;
  }
  return `${text.slice(0, -1)}]`;
}

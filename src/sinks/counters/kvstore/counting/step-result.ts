import { LARGEST_COUNT } from '../../../../limiter/counter-operation';
import { notAnInteger } from '../connections/store-error';

/** The result of one step: the count after it, or the error of its key alone, as the server reported it. */
export type StepResult = number | Error;

/** The result for an integer reply, or for an error in its place. Counts saturate at 2^53 − 1. */
export function stepResult(reply: unknown): StepResult {
  if (typeof reply === 'number') return Math.min(LARGEST_COUNT, reply);
  return reply instanceof Error ? reply : notAnInteger();
}

/** The result for the reply to GET: an absent key counts 0. */
export function readResult(reply: unknown): StepResult {
  if (reply === null) return 0;
  if (reply instanceof Error) return reply;
  return typeof reply === 'string' && /^-?\d+$/.test(reply) ? stepResult(Number(reply)) : notAnInteger();
}

/**
 * The results for the reply of a script. Allocates nothing in the common case, a list of integers.
 *
 * @throws Error when it is not a list of this length: replies no longer match the commands of the connection
 */
export function scriptResults(reply: unknown, length: number): readonly StepResult[] {
  if (!Array.isArray(reply) || reply.length !== length) throw new Error('the reply does not match the script call');
  const list: readonly unknown[] = reply;
  return areCounts(list) ? list : list.map(stepResult);
}

/** Whether no step failed. */
export function areCounts(results: readonly unknown[]): results is readonly number[] {
  return results.every((result) => typeof result === 'number');
}

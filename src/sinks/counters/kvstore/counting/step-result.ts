import { countTooLarge, notAnInteger } from '../connections/store-error';

/** The result of one step: the count after it, or the error of its key alone, as the server reported it. */
export type StepResult = number | Error;

/** The result for an integer reply, or for an error in its place. */
export function stepResult(reply: unknown): StepResult {
  if (isExact(reply)) return reply;
  if (typeof reply === 'number') return countTooLarge();
  return reply instanceof Error ? reply : notAnInteger();
}

/** The result for the reply to GET: an absent key counts 0. */
export function readResult(reply: unknown): StepResult {
  if (reply === null) return 0;
  if (reply instanceof Error) return reply;
  return typeof reply === 'string' && /^-?\d+$/.test(reply) ? stepResult(Number(reply)) : notAnInteger();
}

/**
 * The results for the reply of a script. Allocates nothing in the common case, a list of exact integers.
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
  return results.every(isExact);
}

function isExact(reply: unknown): reply is number {
  return typeof reply === 'number' && reply <= Number.MAX_SAFE_INTEGER;
}

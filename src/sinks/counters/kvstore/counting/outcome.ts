import { beyondExact, notACount } from '../connections/store-error';

/** What became of one operation: its count, or the error of its key alone, as the server said it. */
export type Outcome = number | Error;

/** Of an integer reply, or an error in its place. */
export function outcomeOf(reply: unknown): Outcome {
  if (isExact(reply)) return reply;
  if (typeof reply === 'number') return beyondExact();
  return reply instanceof Error ? reply : notACount();
}

/** Of a GET: an absent key counts 0. */
export function storedOutcomeOf(reply: unknown): Outcome {
  if (reply === null) return 0;
  if (reply instanceof Error) return reply;
  return typeof reply === 'string' && /^-?\d+$/.test(reply) ? outcomeOf(Number(reply)) : notACount();
}

/**
 * Of a script's list. The common case, integers only, allocates nothing.
 *
 * @throws Error when it is no list of this length: the connection has lost its place among replies
 */
export function outcomesOf(replies: unknown, length: number): readonly Outcome[] {
  if (!Array.isArray(replies) || replies.length !== length) throw new Error('the reply is not one to this question');
  const list: readonly unknown[] = replies;
  return areCounts(list) ? list : list.map(outcomeOf);
}

/** Whether everything went well. */
export function areCounts(outcomes: readonly unknown[]): outcomes is readonly number[] {
  return outcomes.every(isExact);
}

function isExact(reply: unknown): reply is number {
  return typeof reply === 'number' && reply <= Number.MAX_SAFE_INTEGER;
}

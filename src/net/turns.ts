import { setImmediate as nextTurn } from 'node:timers/promises';

/** Milliseconds of work between two turns of the event loop: every call that arrives meanwhile waits for them. */
const BUDGET = 2;
/** Steps of the work between two looks at the clock, which takes as long as a short step. */
const STEPS = 16;
/** Characters of a piece, at least. */
const PIECE = 32 * 1024;

/**
 * For work of many short steps: the function that is returned is called after each step, and returns true when a turn
 * of the event loop is due before the next one.
 *
 * @param now monotonic time in milliseconds
 */
export function turnBudget(now: () => number = () => performance.now()): () => boolean {
  let steps = 0;
  let end = 0;
  return () => {
    // Not before: other work, which may take long, has no part in it.
    if (steps === 0) end = now() + BUDGET;
    steps += 1;
    if (steps % STEPS !== 0 || now() < end) return false;
    steps = 0;
    return true;
  };
}

/**
 * Joins texts to the pieces of a page. The event loop turns after every piece, and whenever the work has taken some
 * time; undefined is a step of the work without a text.
 *
 * @param now monotonic time in milliseconds
 */
export async function* inPieces(
  texts: Iterable<string | undefined>,
  now?: () => number,
): AsyncGenerator<string, void, void> {
  const isTurnDue = turnBudget(now);
  let piece = '';
  for (const text of texts) {
    if (text !== undefined) piece += text;
    const isDue = isTurnDue();
    if (piece.length >= PIECE) {
      yield piece;
      piece = '';
    } else if (!isDue) continue;
    // Waiting for the receiver alone does not yield to the event loop: mostly its buffer has room.
    await nextTurn();
  }
  if (piece !== '') yield piece;
}

/**
 * Generates something long once at a time, however many callers ask for it: those that ask while it is generated share
 * the next one, because what they see must not be older than their request.
 */
export function shared<T>(generate: () => Promise<T>): () => Promise<T> {
  /** Ends with what is generated now, or with the next one. */
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  async function generated(): Promise<T> {
    await last;
    next = undefined;
    return generate();
  }
  return () => {
    if (next === undefined) {
      next = generated();
      last = next.catch(() => undefined);
    }
    return next;
  };
}

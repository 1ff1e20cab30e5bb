/** Milliseconds of work between two turns of the event loop: every call that arrives meanwhile waits for them. */
const BUDGET = 2;
/** Steps of the work between two looks at the clock, which takes as long as a short step. */
const STEPS = 16;

/**
 * For work of many short steps: the function that is returned is called after each step, and returns true when a turn of the event loop
 * is due before the next one.
 *
 * @param now monotonic time in milliseconds
 */
export function turnBudget(now: () => number): () => boolean {
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

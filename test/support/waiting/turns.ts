/** How often the event loop turns while something is in progress. */
export async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  function turn(): void {
    turns += 1;
    if (!isOver) setImmediate(turn);
  }
  setImmediate(turn);
  await work;
  isOver = true;
  return turns;
}

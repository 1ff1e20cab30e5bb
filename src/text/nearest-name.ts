/** Names shorter than this are too easily near each other to tell a slip from another program's variable. */
const SHORTEST = 10;
const LONG = 14;

/**
 * The known name that somebody meant who wrote `name`: at most two slips away (a letter added, left out, replaced, or
 * swapped with its neighbour), one for short names; undefined when there is none.
 */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  if (name.length < SHORTEST) return undefined;
  let nearest: string | undefined;
  let least = (name.length < LONG ? 1 : 2) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= least) continue;
    const slips = countSlips(name, candidate);
    if (slips < least) [nearest, least] = [candidate, slips];
  }
  return nearest;
}

/** The optimal string alignment distance. */
function countSlips(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      function cell(cells: readonly number[], back: number) {
        return cells[column - back] ?? Infinity;
      }
      const same = from[row - 1] === to[column - 1];
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current.push(
        Math.min(
          cell(last, 0) + 1,
          cell(current, 1) + 1,
          cell(last, 1) + (same ? 0 : 1),
          swapped ? cell(beforeLast, 2) + 1 : Infinity,
        ),
      );
    }
    [beforeLast, last] = [last, current];
  }
  return last[to.length] ?? Infinity;
}

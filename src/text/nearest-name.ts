/** How far a misspelt name may be from the known name that it most likely means. */
export interface NameTolerance {
  /** The greatest accepted number of edits (see `editDistance`) for a name of this length, in characters. */
  readonly maxEdits: (length: number) => number;
  /** Removes the differences that count as none before two names are compared. */
  readonly normalize?: (name: string) => string;
}

/**
 * For words in rule files and flags of programs: case and separators are ignored, and a third of the characters may
 * differ.
 */
export const KEY_TOLERANCE: NameTolerance = {
  maxEdits: (length) => Math.floor(length / 3),
  normalize: (name) => name.toLowerCase().replaceAll(/[-_\s]/g, ''),
};

/**
 * For names of environment variables, among which those of other programs are common: two edits for long names, one for
 * names of 10 to 13 characters, and none for shorter ones, which resemble each other by chance.
 */
export const VARIABLE_TOLERANCE: NameTolerance = {
  maxEdits: (length) => (length < 10 ? 0 : length < 14 ? 1 : 2),
};

/**
 * The known name that is nearest to `name`: of several that differ equally without what counts as none, the one that
 * also differs least with it, the first of these; undefined when none is within tolerance.
 */
export function nearestName(name: string, known: Iterable<string>, tolerance: NameTolerance): string | undefined {
  const { normalize = (text) => text } = tolerance;
  const normalized = normalize(name);
  let nearest: string | undefined;
  let least = tolerance.maxEdits(normalized.length);
  let leastExactly = Infinity;
  for (const candidate of known) {
    const edits = editDistance(normalized, normalize(candidate), least + 1);
    if (edits > least) continue;
    const exactly = editDistance(name, candidate);
    if (edits === least && exactly >= leastExactly) continue;
    [nearest, least, leastExactly] = [candidate, edits, exactly];
  }
  return nearest;
}

/**
 * The optimal string alignment distance: the number of single characters to insert, delete, replace or swap with their
 * neighbour to turn one text into the other.
 *
 * @param bound returned instead of greater distances, which are then not computed to the end
 */
function editDistance(from: string, to: string, bound = Infinity): number {
  if (Math.abs(from.length - to.length) >= bound) return bound;
  const length = to.length + 1;
  let beforeLast = new Uint32Array(length);
  let last = Uint32Array.from({ length }, (_, column) => column);
  let current = new Uint32Array(length);
  let leastOfLast = 0;
  for (let row = 1; row <= from.length; row += 1) {
    current[0] = row;
    let least = row;
    for (let column = 1; column < length; column += 1) {
      const replaced = from[row - 1] === to[column - 1] ? 0 : 1;
      let edits = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + replaced);
      if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1])
        edits = Math.min(edits, beforeLast[column - 2]! + 1);
      current[column] = edits;
      if (edits < least) least = edits;
    }
    // Each further row follows from the two before it.
    if (Math.min(least, leastOfLast) >= bound) return bound;
    leastOfLast = least;
    [beforeLast, last, current] = [last, current, beforeLast];
  }
  return Math.min(last[to.length]!, bound);
}

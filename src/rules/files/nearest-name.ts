/**
 * The candidate that a misspelt name most likely meant, or undefined when none is near: other case and other separators cost
 * nothing, and otherwise a third of the letters may be wrong, left out, added or swapped.
 */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = folded(name);
  let nearest: string | undefined;
  let fewest = Math.floor(wanted.length / 3) + 1;
  for (const candidate of candidates) {
    const edits = editDistance(wanted, folded(candidate), fewest);
    if (edits < fewest) {
      fewest = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[-_\s]/g, '');
}

/**
 * Single letters to insert, delete, replace or swap with their neighbour to make one text of the other; `bound` or more when it
 * is not below `bound`.
 */
function editDistance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) >= bound) return bound;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let edits = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        edits = Math.min(edits, at(beforeLast, j - 2) + 1);
      row.push(edits);
    }
    beforeLast = last;
    last = row;
  }
  return at(last, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity;
}

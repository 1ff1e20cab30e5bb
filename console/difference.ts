/** A line of two texts: in both of them, or only in the one before or after. */
export interface Line {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** Lines of either text that are compared with all of the other one. More are shown as removed and added. */
const MOST_COMPARED = 2_000;

/** The lines of two texts, of which those that both have are kept in order: as many as possible. */
export function difference(before: string, after: string): readonly Line[] {
  const [old, now] = [before.split('\n'), after.split('\n')];
  let head = 0;
  while (head < Math.min(old.length, now.length) && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  return [
    ...old.slice(0, head).map(kept),
    ...compared(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...old.slice(old.length - tail).map(kept),
  ];
}

function kept(text: string): Line {
  return { kind: 'same', text };
}

function* compared(old: readonly string[], now: readonly string[]): Iterable<Line> {
  const isLong = Math.max(old.length, now.length) > MOST_COMPARED;
  const width = now.length + 1;
  /** At [i][j]: how many lines the rests from i and j have in common. */
  const common = new Uint16Array(isLong ? 0 : (old.length + 1) * width);
  for (let i = old.length - 1; i >= 0 && !isLong; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      const [below, right] = [common[(i + 1) * width + j]!, common[i * width + j + 1]!];
      common[i * width + j] = old[i] === now[j] ? common[(i + 1) * width + j + 1]! + 1 : Math.max(below, right);
    }
  }
  let j = 0;
  for (const [i, text] of old.entries()) {
    while (!isLong && j < now.length && text !== now[j] && common[i * width + j + 1]! > common[(i + 1) * width + j]!) {
      yield { kind: 'added', text: now[j]! };
      j += 1;
    }
    const isSame = !isLong && text === now[j];
    yield { kind: isSame ? 'same' : 'removed', text };
    if (isSame) j += 1;
  }
  for (const text of now.slice(j)) yield { kind: 'added', text };
}

/** The lines that differ, with two lines around each; undefined where some are left out. */
export function excerptOf(lines: readonly Line[]): readonly (Line | undefined)[] {
  const shown = new Set(
    lines.flatMap(({ kind }, at) => (kind === 'same' ? [] : [-2, -1, 0, 1, 2].map((by) => at + by))),
  );
  return lines.flatMap((line, at) => {
    if (shown.has(at)) return [line];
    return at === 0 || shown.has(at - 1) ? [undefined] : [];
  });
}

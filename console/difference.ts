/** A line of two texts: in both of them, or only in the one before or after; or in place of lines that are left out. */
export interface Line {
  readonly kind: 'same' | 'removed' | 'added' | 'omitted';
  readonly text: string;
}

/** Lines of either text that are compared with all of the other one. More are shown as removed and added. */
const MOST_COMPARED = 2_000;

/** The lines of two texts, of which those that both have are kept in order: as many as possible. */
export function difference(before: string, after: string): readonly Line[] {
  const [old, now] = [before.split('\n'), after.split('\n')];
  const least = Math.min(old.length, now.length);
  let head = 0;
  while (head < least && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < least - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  return [
    ...linesOf('same', old.slice(0, head)),
    ...compared(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...linesOf('same', old.slice(old.length - tail)),
  ];
}

function linesOf(kind: Line['kind'], texts: readonly string[]): readonly Line[] {
  return texts.map((text) => ({ kind, text }));
}

function compared(old: readonly string[], now: readonly string[]): readonly Line[] {
  if (Math.max(old.length, now.length) > MOST_COMPARED) return [...linesOf('removed', old), ...linesOf('added', now)];
  const width = now.length + 1;
  /** At [i][j]: how many lines the rests from i and j have in common. */
  const common = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      const [below, right] = [common[(i + 1) * width + j]!, common[i * width + j + 1]!];
      common[i * width + j] = old[i] === now[j] ? common[(i + 1) * width + j + 1]! + 1 : Math.max(below, right);
    }
  }
  const lines: Line[] = [];
  let j = 0;
  for (const [i, text] of old.entries()) {
    const first = j;
    while (j < now.length && text !== now[j] && common[i * width + j + 1]! > common[(i + 1) * width + j]!) j += 1;
    lines.push(...linesOf('added', now.slice(first, j)), { kind: text === now[j] ? 'same' : 'removed', text });
    if (text === now[j]) j += 1;
  }
  return [...lines, ...linesOf('added', now.slice(j))];
}

/** The lines that differ, with two lines around each. */
export function excerptOf(lines: readonly Line[]): readonly Line[] {
  const near = new Set(
    lines.flatMap(({ kind }, at) => (kind === 'same' ? [] : [-2, -1, 0, 1, 2].map((by) => at + by))),
  );
  return lines.flatMap((line, at): readonly Line[] => {
    if (near.has(at)) return [line];
    return at === 0 || near.has(at - 1) ? [{ kind: 'omitted', text: '…' }] : [];
  });
}

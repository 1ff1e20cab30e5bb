import type { Problem } from './problem';

/**
 * A problem in human-readable form, on several lines:
 *
 * ```
 * api.yaml:7:13: error: invalid rate limit unit 'minut' [invalid-unit]
 *   |       unit: minut
 *   |             ^^^^^
 *   Did you mean `minute`? …
 * ```
 */
export function formatProblem(problem: Problem): string {
  const { severity, message, code, sourceLine, advice } = problem;
  const head = `${positionOf(problem)}: ${severity}: ${message} [${code}]`;
  const shown = sourceLine.trim() === '' ? [] : [`  | ${visible(sourceLine)}`, `  | ${underline(problem)}`];
  return [head, ...shown, `  ${advice}`].join('\n');
}

/** A problem on one line, for a log. */
export function summarizeProblem(problem: Problem): string {
  return `${positionOf(problem)}: ${problem.message}. ${problem.advice}`;
}

function positionOf({ file, line, column }: Problem): string {
  return line === 0 ? file : `${file}:${line}:${column}`;
}

/** Carets under the marked part. The indentation keeps its width: a tab stays a tab, a wide character takes two columns. */
function underline({ sourceLine, mark }: Problem): string {
  const before = sourceLine.slice(0, mark.start);
  const indent = Array.from(before, (character) =>
    character === '\t' ? '\t' : ' '.repeat(displayWidth(character)),
  ).join('');
  const marked = sourceLine.slice(mark.start, mark.start + mark.length);
  return indent + '^'.repeat(Math.max(1, displayWidth(marked)));
}

/** Replaces control characters, which a terminal would interpret. */
function visible(line: string): string {
  // oxlint-disable-next-line no-control-regex -- the expression looks for control characters
  return line.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');
}

/** Characters that take two columns in a terminal: East Asian scripts, full-width forms and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;
/** Characters that take no column: accents and joiners, which combine with the preceding character. */
const ZERO_WIDTH = /[\p{Mn}\p{Me}\p{Cf}]/u;

/** The number of columns that a text without tabs takes in a terminal. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text) width += ZERO_WIDTH.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}

import { displayWidth } from './display-width';
import type { Problem } from './problem';

/**
 * A problem for people, over several lines:
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

/** Carets under the place. What precedes it keeps its width: a tab stays a tab, a wide character takes two columns. */
function underline({ sourceLine, mark }: Problem): string {
  const before = sourceLine.slice(0, mark.start);
  const indent = Array.from(before, (character) =>
    character === '\t' ? '\t' : ' '.repeat(displayWidth(character)),
  ).join('');
  const marked = sourceLine.slice(mark.start, mark.start + mark.length);
  return indent + '^'.repeat(Math.max(1, displayWidth(marked)));
}

/** A terminal obeys control characters; a message must not. */
function visible(line: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return line.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');
}

import { visible } from '../../../text/visible';
/**
 * Every problem that a rule file can have, by code. An error prevents the files from loading; a warning is about something
 * that loads, but has less effect than it seems to have. `docs/rule-errors.md` explains each code.
 */
export const PROBLEM_CODES = {
  // The folder.
  'unreadable-folder': 'error',
  'unreadable-file': 'error',
  'folder-too-large': 'error',
  'no-rule-files': 'warning',
  'ignored-files': 'warning',
  'linked-folders': 'warning',
  // The file as a whole.
  'file-too-large': 'error',
  'invalid-utf8': 'error',
  'control-character': 'error',
  // YAML.
  'yaml-syntax': 'error',
  'tab-indentation': 'error',
  'yaml-version': 'error',
  'unsupported-tag': 'error',
  'unknown-anchor': 'error',
  'anchor-contains-itself': 'error',
  'too-many-aliases': 'error',
  'nested-too-deeply': 'error',
  'invalid-merge': 'error',
  // Shape.
  'not-a-mapping': 'error',
  'key-not-text': 'error',
  'unknown-key': 'error',
  'list-item-not-a-mapping': 'error',
  'wrong-type': 'error',
  // Meaning.
  'empty-domain': 'error',
  'duplicate-domain': 'error',
  'empty-key': 'error',
  'duplicate-descriptor': 'error',
  'invalid-unit': 'error',
  'unit-when-unlimited': 'error',
  'invalid-unit-multiplier': 'error',
  'window-too-long': 'error',
  'missing-requests-per-unit': 'error',
  'invalid-requests-per-unit': 'error',
  'empty-replaces': 'error',
  'replaces-itself': 'error',
  'share-threshold-without-wildcard': 'error',
  'invalid-metadata': 'error',
  // What loads, but has less effect than it seems to have.
  'second-document': 'warning',
  'ignored-tag': 'warning',
  'repeated-key': 'warning',
  'merge-overrides-key': 'warning',
  'merged-rate-limit': 'warning',
  'misplaced-key': 'warning',
  'empty-field': 'warning',
  'octal-number': 'warning',
  'no-descriptors': 'warning',
  'wildcard-in-key': 'warning',
  'ignored-when-unlimited': 'warning',
  'ignored-without-limit': 'warning',
  'ignored-value-to-metric': 'warning',
  'unreachable-rule': 'warning',
  'replaces-unknown-name': 'warning',
  'replaces-unlimited': 'warning',
  'zero-limit-for-all': 'warning',
  'unbounded-metric': 'warning',
} as const;

export type ProblemCode = keyof typeof PROBLEM_CODES;
export type Severity = (typeof PROBLEM_CODES)[ProblemCode];

/** What is wrong, without the place. */
export interface ProblemDetails {
  readonly code: ProblemCode;
  /** What is wrong, in the words of the Go service where it has a message for the same mistake. */
  readonly message: string;
  /** What to do about it. */
  readonly advice: string;
}

/** One problem at one place of a rule file. Plain data: it survives a structured clone and prints as JSON. */
export interface Problem extends ProblemDetails {
  readonly severity: Severity;
  /** The file's path as it was given. */
  readonly file: string;
  /** Counted from 1; 0 when the problem concerns the file or folder as a whole. */
  readonly line: number;
  /** Counted from 1, in characters (code points), not in bytes. */
  readonly column: number;
  /** The text of the line; of a very long line, the part around the place, with `…` where it is cut. */
  readonly sourceLine: string;
  /** The marked part of {@link sourceLine}: start counted from 0, length at least 1, both in UTF-16 code units. */
  readonly mark: { readonly start: number; readonly length: number };
}

/** A problem with a file or folder as a whole: its line is 0. */
export function folderProblem(file: string, details: ProblemDetails): Problem {
  const mark = { start: 0, length: 1 };
  return { ...details, severity: PROBLEM_CODES[details.code], file, line: 0, column: 0, sourceLine: '', mark };
}

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
  const before = visible(sourceLine.slice(0, mark.start));
  const indent = Array.from(before, (character) =>
    character === '\t' ? '\t' : ' '.repeat(displayWidth(character)),
  ).join('');
  const marked = visible(sourceLine.slice(mark.start, mark.start + mark.length));
  return indent + '^'.repeat(Math.max(1, displayWidth(marked)));
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

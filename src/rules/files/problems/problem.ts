import { PROBLEM_CODES, type ProblemCode, type Severity } from './problem-codes';

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

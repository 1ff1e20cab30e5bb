import { PROBLEM_CODES, type ProblemCode, type Severity } from './problem-codes';

/** Something to be said of one place in a rule file. Plain data: it survives a structured clone and prints as JSON. */
export interface Problem {
  readonly code: ProblemCode;
  readonly severity: Severity;
  /** The file's path as it was given. */
  readonly file: string;
  /** Counted from 1; 0 when the problem is with the file or folder as a whole. */
  readonly line: number;
  /** Counted from 1, in characters (code points), not in bytes. */
  readonly column: number;
  /** The line itself; of a very long one the part around the place, with `…` where it is cut. */
  readonly sourceLine: string;
  /** Where in {@link sourceLine} the place begins, counted from 0 in UTF-16 units, and how long it is there, at least 1. */
  readonly mark: { readonly start: number; readonly length: number };
  /** What is wrong, in the words that the Go service uses where it says the same. */
  readonly message: string;
  /** What to do. */
  readonly advice: string;
}

/** A problem with a file or folder as a whole: it has no line, which is said by the line 0. */
export function folderProblem(file: string, code: ProblemCode, message: string, advice: string): Problem {
  const mark = { start: 0, length: 1 };
  return { code, severity: PROBLEM_CODES[code], file, line: 0, column: 0, sourceLine: '', mark, message, advice };
}

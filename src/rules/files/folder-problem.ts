import { PROBLEM_CODES, type ProblemCode } from './problem-codes';
import type { Problem } from './problem';

/** A problem with a file or folder as a whole: it has no line, which is said by the line 0. */
export function folderProblem(file: string, code: ProblemCode, message: string, advice: string): Problem {
  const mark = { start: 0, length: 1 };
  return { code, severity: PROBLEM_CODES[code], file, line: 0, column: 0, sourceLine: '', mark, message, advice };
}

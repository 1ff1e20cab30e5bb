import { PROBLEM_CODES, type ProblemCode } from './problem-codes';
import type { Problem } from './problem';
import type { Place, SourceText } from './source-text';

/** Gathers problems. What stands once in a file is said once, however many aliases lead to it. */
export class ProblemReport {
  readonly errors: Problem[] = [];
  readonly warnings: Problem[] = [];
  private readonly said = new Set<string>();

  add(source: SourceText, place: Place, code: ProblemCode, message: string, advice: string): void {
    const identity = `${code} ${place.offset} ${source.file} ${message}`;
    if (this.said.has(identity)) return;
    this.said.add(identity);
    const severity = PROBLEM_CODES[code];
    const problem: Problem = { code, severity, file: source.file, ...source.locate(place), message, advice };
    (severity === 'error' ? this.errors : this.warnings).push(problem);
  }
}

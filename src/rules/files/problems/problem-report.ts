import { PROBLEM_CODES } from './problem-codes';
import type { Problem, ProblemDetails } from './problem';
import type { SourceDocument, SourceRange } from './source-text';

/** Collects problems. A problem of one place is reported once, however many aliases lead to that place. */
export class ProblemReport {
  readonly #errors: Problem[] = [];
  readonly #warnings: Problem[] = [];
  readonly #reported = new Set<string>();

  get errorCount(): number {
    return this.#errors.length;
  }

  add(source: SourceDocument, range: SourceRange, details: ProblemDetails): void {
    const { code, message, advice } = details;
    const identity = `${code} ${range.offset} ${source.file} ${message}`;
    if (this.#reported.has(identity)) return;
    this.#reported.add(identity);
    const severity = PROBLEM_CODES[code];
    const problem: Problem = { code, severity, file: source.file, ...source.locate(range), message, advice };
    (severity === 'error' ? this.#errors : this.#warnings).push(problem);
  }

  /**
   * All problems, sorted by file, line and column.
   * @param files paths in the order in which the files are sorted
   */
  finish(files: readonly string[]): { errors: Problem[]; warnings: Problem[] } {
    const rank = new Map(files.map((file, index) => [file, index]));
    function byPosition(a: Problem, b: Problem) {
      return (rank.get(a.file) ?? 0) - (rank.get(b.file) ?? 0) || a.line - b.line || a.column - b.column;
    }
    return { errors: this.#errors.toSorted(byPosition), warnings: this.#warnings.toSorted(byPosition) };
  }
}

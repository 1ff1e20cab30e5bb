import { PROBLEM_CODES, type ProblemCode } from './problem-codes';
import type { Problem } from './problem';
import type { Place, Source } from './source-text';

/** Gathers problems. What stands once in a file is said once, however many aliases lead to it. */
export class ProblemReport {
  readonly #errors: Problem[] = [];
  readonly #warnings: Problem[] = [];
  readonly #said = new Set<string>();

  get hasErrors(): boolean {
    return this.#errors.length > 0;
  }

  /**
   * Everything said, in reading order.
   * @param files their paths, in order
   */
  finish(files: readonly string[]): { errors: Problem[]; warnings: Problem[] } {
    const rank = new Map(files.map((file, index) => [file, index]));
    function byPlace(a: Problem, b: Problem) {
      return (rank.get(a.file) ?? 0) - (rank.get(b.file) ?? 0) || a.line - b.line || a.column - b.column;
    }
    return { errors: this.#errors.toSorted(byPlace), warnings: this.#warnings.toSorted(byPlace) };
  }

  add(source: Source, place: Place, code: ProblemCode, message: string, advice: string): void {
    const identity = `${code} ${place.offset} ${source.file} ${message}`;
    if (this.#said.has(identity)) return;
    this.#said.add(identity);
    const severity = PROBLEM_CODES[code];
    const problem: Problem = { code, severity, file: source.file, ...source.locate(place), message, advice };
    (severity === 'error' ? this.#errors : this.#warnings).push(problem);
  }
}

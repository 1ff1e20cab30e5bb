import type { RuleConfig } from '../../rule-config';
import type { RuleLocation, RuleLocations } from '../fields/read-context';
import type { ProblemDetails } from '../problems/problem';
import type { ProblemReport } from '../problems/problem-report';
import type { SourceRange } from '../problems/source-text';

/** What the checks of several rules share: where the rules are, and the report. */
export class CheckContext {
  readonly #locations: RuleLocations;
  readonly #problems: ProblemReport;

  constructor(locations: RuleLocations, problems: ProblemReport) {
    this.#locations = locations;
    this.#problems = problems;
  }

  locationOf(rule: RuleConfig): RuleLocation | undefined {
    return this.#locations.get(rule);
  }

  report({ source }: RuleLocation, range: SourceRange, details: ProblemDetails): void {
    this.#problems.add(source, range, details);
  }
}

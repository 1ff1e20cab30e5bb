import type { RuleConfig } from '../../rule-config';
import type { ProblemDetails } from '../problems/problem';
import type { ProblemReport } from '../problems/problem-report';
import type { SourceDocument, SourceRange } from '../problems/source-text';

/** Where a rule is, and where in it the fields are that the checks report about. */
export interface RuleLocation {
  readonly source: SourceDocument;
  /** Its `key`, or its start when it has none. */
  readonly key: SourceRange;
  readonly value: SourceRange;
  readonly requestsPerUnit: SourceRange | undefined;
  /** Of each name in `replaces`, in order. */
  readonly replaces: readonly SourceRange[];
  readonly detailedMetric: SourceRange | undefined;
  readonly valueToMetric: SourceRange | undefined;
}

/** The locations of the rules of all files. */
export type RuleLocations = ReadonlyMap<RuleConfig, RuleLocation>;

/** What the readers share while they read one source. */
export class ReadContext {
  readonly source: SourceDocument;
  /** Where each rule of every source is, for the checks that compare rules. */
  readonly locations: Map<RuleConfig, RuleLocation>;
  readonly #problems: ProblemReport;

  constructor(source: SourceDocument, locations: Map<RuleConfig, RuleLocation>, problems: ProblemReport) {
    this.source = source;
    this.locations = locations;
    this.#problems = problems;
  }

  report(range: SourceRange, details: ProblemDetails): void {
    this.#problems.add(this.source, range, details);
  }

  /** `line 7`, with the file's name when it is another one: for a message that refers to a second place. */
  describe(range: SourceRange, source: SourceDocument = this.source): string {
    const name = source.describe(range);
    return source === this.source ? name : `${source.file}, ${name}`;
  }
}

/** The start of a node, to mark in a message where there is no better place. */
export function startOf({ offset }: SourceRange): SourceRange {
  return { offset, end: offset + 1 };
}

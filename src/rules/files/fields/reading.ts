import type { RuleConfig } from '../../rule-config';
import type { ProblemCode } from '../problems/problem-codes';
import type { ProblemReport } from '../problems/problem-report';
import type { Place, Source } from '../problems/source-text';

/** Where a rule stands, and where in it the things are that may be wrong. */
export interface RulePlace {
  readonly source: Source;
  /** Its `key` where it has one. */
  readonly key: Place;
  readonly value: Place;
  readonly requestsPerUnit: Place | undefined;
  /** Of each name in `replaces`, in order. */
  readonly replaces: readonly Place[];
  readonly detailedMetric: Place | undefined;
  readonly valueToMetric: Place | undefined;
}

/** Where each rule of every file stands. */
export type RulePlaces = ReadonlyMap<RuleConfig, RulePlace>;

/** What the parts of a reader share while they read one file. */
export class Reading {
  readonly #report: ProblemReport;
  constructor(
    readonly source: Source,
    report: ProblemReport,
    /** Where each rule of every file stands, for the checks that look at several rules. */
    readonly places: Map<RuleConfig, RulePlace>,
  ) {
    this.#report = report;
  }

  say(place: Place, code: ProblemCode, message: string, advice: string): void {
    this.#report.add(this.source, place, code, message, advice);
  }

  /** `line 7`, or with the file where it is another: for a message that points at a second place. */
  nameOf(place: Place, source: Source): string {
    const name = source.nameOf(place);
    return source === this.source ? name : `${source.file}, ${name}`;
  }
}

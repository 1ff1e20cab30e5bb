import { formatProblem, summarizeProblem } from '../../rules/files/problems/problem';
import { type RuleFile, readRuleFiles } from '../../rules/files/read-rule-files';
import type { DomainConfig } from '../../rules/rule-config';

/** Rules, with their errors and warnings as human-readable lines. */
export interface CheckedRules {
  readonly configs: readonly DomainConfig[];
  /** Not empty: the rules are rejected. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  /** The errors in files, each with its line and carets below it. */
  readonly report?: readonly string[];
}

/** The errors, and the warnings, that a rejection and a log show at most; `weir-check` shows all of those in files. */
const MAX_LINES = 50;

/** Parses and checks the contents of rule files. */
export function checkFiles(files: readonly RuleFile[], mergeDomainConfigs: boolean): CheckedRules {
  const { configs, errors, warnings } = readRuleFiles(files, { mergeDomainConfigs });
  return {
    configs,
    errors: firstOf(errors, summarizeProblem, 'errors: weir-check shows them all'),
    report: firstOf(errors, formatProblem, 'errors: weir-check shows them all'),
    warnings: firstOf(warnings, summarizeProblem, 'warnings: weir-check shows them all'),
  };
}

/** The lines of the first problems, and the number of the others. */
export function firstOf<T>(problems: readonly T[], lineOf: (problem: T) => string, what: string): readonly string[] {
  const lines = problems.slice(0, MAX_LINES).map((problem) => lineOf(problem));
  const leftOut = problems.length - lines.length;
  return leftOut > 0 ? [...lines, `and ${leftOut} more ${what}`] : lines;
}

import { formatProblem } from '../../rules/files/problems/problem';
import type { RuleConfig } from '../../rules/rule-config';
import { counted } from '../../text/counted';
import type { CheckedRules } from './read-rules';

/** The result of a check in numbers. */
export interface Totals {
  readonly ok: boolean;
  readonly files: number;
  readonly domains: number;
  /** The number of descriptors, of all levels. */
  readonly rules: number;
}

/** @param strict warnings count as errors */
export function totalsOf({ files, configs, errors, warnings }: CheckedRules, strict: boolean): Totals {
  return {
    ok: errors.length === 0 && !(strict && warnings.length > 0),
    files,
    domains: configs.length,
    rules: configs.reduce((sum, { descriptors }) => sum + countRules(descriptors), 0),
  };
}

/** All problems, then a line with the totals. */
export function textReport({ errors, warnings }: CheckedRules, { ok, files, domains, rules }: Totals): string {
  const problems = [...errors, ...warnings].map((problem) => `${formatProblem(problem)}\n\n`);
  const found = `${counted(errors.length, 'error')}, ${counted(warnings.length, 'warning')}`;
  const read = `${counted(files, 'file')}, ${counted(domains, 'domain')}, ${counted(rules, 'rule')}`;
  return `${problems.join('')}${ok ? 'passed' : 'failed'}: ${read}; ${found}`;
}

function countRules(rules: readonly RuleConfig[]): number {
  return rules.reduce((sum, { descriptors }) => sum + 1 + countRules(descriptors), 0);
}

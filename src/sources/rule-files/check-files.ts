import { summarizeProblem } from '../../rules/files/problems/format-problem';
import type { Problem } from '../../rules/files/problems/problem';
import { type RuleFile, readRuleFiles } from '../../rules/files/read-rule-files';
import type { CheckedRules } from '../rule-thread/transfer-rules';

/** A log shows this many of each kind; `weir-check` shows them all. */
const MOST_LINES = 50;

/** Reads and checks the text of rule files. */
export function checkFiles(files: readonly RuleFile[], mergeDomainConfigs: boolean): CheckedRules {
  const { configs, errors, warnings } = readRuleFiles(files, { mergeDomainConfigs });
  return { configs, errors: linesOf(errors, 'errors'), warnings: linesOf(warnings, 'warnings') };
}

function linesOf(problems: readonly Problem[], what: string): string[] {
  const lines = problems.slice(0, MOST_LINES).map((problem) => summarizeProblem(problem));
  const more = problems.length - lines.length;
  if (more > 0) lines.push(`and ${more} more ${what}: weir-check shows them all`);
  return lines;
}

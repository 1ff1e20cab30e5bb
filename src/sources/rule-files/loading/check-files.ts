import { summarizeProblem } from '../../../rules/files/problems/problem';
import type { Problem } from '../../../rules/files/problems/problem';
import { type RuleFile, readRuleFiles } from '../../../rules/files/read-rule-files';
import type { CheckedRules } from '../../rule-thread/transfer-rules';

/** The errors, and the warnings, that a log shows at most; `weir-check` shows all of them. */
const MAX_LINES = 50;

/** Parses and checks the contents of rule files. */
export function checkFiles(files: readonly RuleFile[], mergeDomainConfigs: boolean): CheckedRules {
  const { configs, placeOf, errors, warnings } = readRuleFiles(files, { mergeDomainConfigs });
  return { configs, placeOf, errors: linesOf(errors, 'errors'), warnings: linesOf(warnings, 'warnings') };
}

function linesOf(problems: readonly Problem[], what: string): string[] {
  const lines = problems.slice(0, MAX_LINES).map((problem) => summarizeProblem(problem));
  const more = problems.length - lines.length;
  if (more > 0) lines.push(`and ${more} more ${what}: weir-check shows them all`);
  return lines;
}

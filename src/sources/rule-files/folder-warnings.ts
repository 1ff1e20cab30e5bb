import type { RuleFiles } from './reading/list-rule-files';

/** The names that one warning lists. */
const MAX_NAMES = 10;

/** What the contents of a rule folder give reason to warn about, apart from the rules themselves: one sentence each. */
export function folderWarnings(dir: string, { files, others, linkedFolders }: RuleFiles): string[] {
  const warnings: string[] = [];
  if (files.length === 0) warnings.push(`the rule folder ${dir} has no rule files (*.yaml, *.yml): nothing is limited`);
  if (others.length > 0) warnings.push(`only *.yaml and *.yml are read in ${dir}, not ${namesOf(others)}`);
  if (linkedFolders.length > 0) warnings.push(`links to folders are not followed in ${dir}: ${namesOf(linkedFolders)}`);
  return warnings;
}

function namesOf(paths: readonly string[]): string {
  const more = paths.length - MAX_NAMES;
  return paths.slice(0, MAX_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

import { optionsOfTests } from '../../src/cli/check/deciding-settings';
import { playTest } from '../../src/cli/tests/play';
import { readDecisions } from '../../src/cli/tests/read-tests';
import { readRuleFiles } from '../../src/rules/files/read-rule-files';
import { formatProblem } from '../../src/rules/files/problems/problem';
import { type Ruleset, buildRuleset } from '../../src/rules/ruleset';

/** The rules of a file; throws with its problems, warnings included. */
export function rulesetOf(yaml: string): { readonly ruleset: Ruleset; readonly domain: string } {
  const files = [{ path: 'example.yaml', content: new TextEncoder().encode(yaml) }];
  const { configs, errors, warnings } = readRuleFiles(files, { mergeDomainConfigs: false });
  const problems = [...errors, ...warnings].map(formatProblem);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return { ruleset: buildRuleset(configs), domain: configs[0]!.domain };
}

/** Plays the lines of a block `decisions`. Returns those that are not so, and how many lines say what is expected. */
export async function playDecisions(yaml: string, block: string) {
  const { settings, tests } = readDecisions('the block', block);
  const stage = { ruleset: rulesetOf(yaml).ruleset, options: optionsOfTests(settings), matched: new Set<never>() };
  const played = await Promise.all(tests.map((test) => playTest(test, stage)));
  const differences = played.flatMap((each) => each.differences);
  return {
    expectations: played.reduce((sum, each) => sum + each.expectations, 0),
    differences: differences.map(({ expected, actual, text }) => ({ text, expected, actual })),
  };
}

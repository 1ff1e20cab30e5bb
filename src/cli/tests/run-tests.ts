import type { LimiterOptions } from '../../limiter/options';
import { type Problem, formatProblem } from '../../rules/files/problems/problem';
import type { Rule } from '../../rules/rule-tree';
import { type Ruleset, buildRuleset } from '../../rules/ruleset';
import { plainStatisticsKey } from '../../rules/statistics-key';
import { counted } from '../../text/counted';
import { grouped } from '../../text/grouped';
import { visibleLines } from '../../text/visible';
import type { RuleChange } from '../check/changes';
import { type CheckedCase, type Finding, casesOfRules } from '../check/formats';
import type { CheckedRules } from '../check/read-rules';
import { formatExplanation, placeOf } from '../../explain/text';
import { type Difference, playTest } from './play';
import { correctTestFile } from './read-tests';
import type { TestFile } from './test-document';

export interface TestsOptions {
  /** Reads the rules of paths; empty: those of the command line. */
  readonly readRules: (paths: readonly string[]) => Promise<CheckedRules>;
  /** @throws Error with one sentence for the user, for settings that do not matter here or are invalid */
  readonly optionsOf: (settings: Readonly<Record<string, string>>) => LimiterOptions;
  /** Whether what is right is written into the files. */
  readonly isUpdated: boolean;
}

/** A {@link Difference} as it is reported. */
export interface TestFailure extends Pick<Difference, 'expected' | 'actual' | 'explanation'> {
  readonly file: string;
  readonly line: number;
  readonly test: string;
  /** Whether what is right was written into the file. */
  readonly isUpdated: boolean;
}

export interface TestsReport {
  readonly ok: boolean;
  readonly files: number;
  readonly tests: readonly { readonly file: string; readonly name: string; readonly ok: boolean }[];
  readonly expectations: number;
  readonly failures: readonly TestFailure[];
  /** The errors of the rules, with which no test of theirs is played. */
  readonly errors: readonly Problem[];
  /** How many rules the tests could match, and which of them no descriptor of a test has matched. */
  readonly coverage: { readonly rules: number; readonly missed: readonly Pick<RuleChange, 'rule' | 'place'>[] };
}

/** Plays test files. @throws Error with one sentence for the user */
export async function runTests(files: readonly TestFile[], options: TestsOptions): Promise<TestsReport> {
  /** By their paths. */
  const rulesets = new Map<string, Ruleset | undefined>();
  const matched = new Set<Rule>();
  const played: TestsReport['tests'][number][] = [];
  const [failures, errors]: [TestFailure[], Problem[]] = [[], []];
  let expectations = 0;
  async function rulesetOf(paths: readonly string[]): Promise<Ruleset | undefined> {
    const key = paths.join('\0');
    if (!rulesets.has(key)) {
      const read = await options.readRules(paths);
      errors.push(...read.errors);
      rulesets.set(key, read.errors.length === 0 ? buildRuleset(read.configs) : undefined);
    }
    return rulesets.get(key);
  }
  for (const { path, rules, settings, tests } of files) {
    const ruleset = await rulesetOf(rules);
    if (ruleset === undefined) continue;
    const stage = { ruleset, options: options.optionsOf(settings), matched };
    const corrected: Difference[] = [];
    for (const test of tests) {
      const { differences, expectations: ofTest } = await playTest(test, stage);
      expectations += ofTest;
      for (const difference of differences) {
        const { number: line, expected, actual, right, explanation } = difference;
        const isUpdated = options.isUpdated && right !== undefined;
        if (isUpdated) corrected.push(difference);
        failures.push({ file: path, line, test: test.name, expected, actual, explanation, isUpdated });
      }
      const ok = differences.every(({ right }) => options.isUpdated && right !== undefined);
      played.push({ file: path, name: test.name, ok });
    }
    if (corrected.length > 0) await correctTestFile(path, corrected);
  }
  return {
    ok: errors.length === 0 && failures.every(({ isUpdated }) => isUpdated),
    ...{ files: files.length, tests: played, expectations, failures, errors },
    coverage: coverageOf([...rulesets.values()], matched),
  };
}

function coverageOf(rulesets: readonly (Ruleset | undefined)[], matched: ReadonlySet<Rule>): TestsReport['coverage'] {
  const rules = rulesets.flatMap((ruleset) => (ruleset === undefined ? [] : [...resultsOf(ruleset)]));
  const missed = rules.filter((rule) => !matched.has(rule));
  return {
    rules: rules.length,
    missed: missed.map((rule) => ({ rule: plainStatisticsKey(rule), place: rule.place ?? null })),
  };
}

/** The rules that can be the result for a descriptor: those with a limit, and those that allow everything. */
function* resultsOf({ domains, unmatched }: Ruleset): IterableIterator<Rule> {
  for (const level of domains.values()) {
    for (const { rule } of level.walk()) if (rule.limit !== undefined || rule.nested === undefined) yield rule;
  }
  yield* unmatched.values();
}

/** The tests as cases, for reports of other programs. */
export function casesOf({ tests, failures, errors }: TestsReport): readonly CheckedCase[] {
  const left = failures.filter(({ isUpdated }) => !isUpdated);
  const byTest = grouped(left, ({ file, test }) => `${file}\0${test}`);
  const ofTests = tests.map(({ file, name }) => {
    return { file, name, findings: (byTest.get(`${file}\0${name}`) ?? []).map(findingOfFailure) };
  });
  return [...casesOfRules(errors), ...ofTests];
}

function findingOfFailure({ file, line, test, expected, actual, explanation }: TestFailure): Finding {
  const message = `${test}: ${expected === null ? actual : `expected ${expected}, but it is ${actual}`}`;
  return { file, line, column: 0, severity: 'error', code: 'failed-test', message, details: explained(explanation) };
}

/** The lines of an explanation; none, if there is none. */
function explained(explanation: TestFailure['explanation']): readonly string[] {
  return explanation === null
    ? []
    : formatExplanation(explanation)
        .split('\n')
        .map((each) => `  | ${each}`);
}

/** The report as text: each failure with its explanation, what no test has matched, and the totals. */
export function formatTests(report: TestsReport, { coverage: isListed }: { readonly coverage: boolean }): string {
  const { ok, files, tests, expectations, failures, errors, coverage } = report;
  const blocks = errors.map(formatProblem);
  const left = failures.filter(({ isUpdated }) => !isUpdated);
  blocks.push(...left.map(formatFailure));
  if (isListed && coverage.missed.length > 0) {
    const rules = coverage.missed.map(({ rule, place }) => `  ${rule} (${placeOf(place)})`);
    blocks.push(visibleLines(['no test has matched:', ...rules]));
  }
  const played = `${counted(files, 'file')}, ${counted(tests.length, 'test')}, ${counted(expectations, 'expectation')}`;
  const updated = failures.length - left.length;
  const changed = updated === 0 ? '' : `, ${counted(updated, 'line')} written into the files`;
  const matched = `${coverage.rules - coverage.missed.length} of ${counted(coverage.rules, 'rule')} matched`;
  blocks.push(`${ok ? 'passed' : 'failed'}: ${played}; ${left.length} not as expected${changed}; ${matched}`);
  return blocks.join('\n\n');
}

function formatFailure({ file, line, test, expected, actual, explanation }: TestFailure): string {
  const place = `${file}:${line}: ${test}`;
  if (expected === null) return visibleLines([place, `  ${actual}`]);
  const lines = [place, `  expected ${expected}`, `  actual   ${actual}`];
  return visibleLines([...lines, ...explained(explanation)]);
}

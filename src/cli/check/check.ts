import { abilitiesAtCheck } from '../../settings/stores';
import { DEFAULT_OPTIONS } from '../../limiter/options';
import { NO_HITS_ADDEND, type RateLimitRequest } from '../../limiter/request';
import { folderProblem, formatProblem } from '../../rules/files/problems/problem';
import type { RuleConfig } from '../../rules/rule-config';
import { type Ruleset, buildRuleset } from '../../rules/ruleset';
import type { Explanation } from '../../explain/explanation';
import { counted } from '../../text/counted';
import { formatExplanation } from '../../explain/text';
import { FlagError, type FlagValues, booleanFlag, choiceFlag, textFlag } from '../flags';
import { type CommandLine, Exit, type Program, type ProgramResult } from '../program';
import { beyondStore, notLeasedWarning, notLocalWarning, timesWarning } from '../../sources/loading/ineffective-rules';
import { parseEntries } from '../request';
import { Player } from '../replay/player';
import { replayPage } from '../replay/page';
import { replay } from '../replay/replay';
import { type ReplayReport, formatReport } from '../replay/report';
import { readTestFiles } from '../tests/read-tests';
import { casesOf, formatTests, runTests } from '../tests/run-tests';
import { decidingOptions, optionsOfTests, readSome } from './deciding-settings';
import { formatChanges, formatChangesAsMarkdown, rulesetChanges } from './changes';
import { type CheckedCase, FORMATS, type Format, casesOfRules, formatCases } from './formats';
import { type CheckedRules, type ReadOptions, readRules } from './read-rules';

/** The flags of weir-check. The first two have the names of the Go service's config check. */
const CHECK_FLAGS = {
  config_dir: textFlag('PATH', 'a folder or file, like an argument PATH'),
  merge_domain_configs: booleanFlag('allow several files for one domain, like MERGE_DOMAIN_CONFIG'),
  ignore_dot_files: booleanFlag('skip names that begin with a dot, like RUNTIME_IGNOREDOTFILES'),
  strict: booleanFlag('exit with code 1 for warnings too'),
  format: choiceFlag(FORMATS, 'what is printed: for a reader, or for another program'),
  json: booleanFlag('the same as -format json'),
  explain: booleanFlag('show which rule limits a call: PATH -explain DOMAIN KEY=VALUE,KEY=VALUE …'),
  test: booleanFlag('play tests of rules: -test FILE…, each *.test.yaml or *.decisions, or a folder with such files'),
  coverage: booleanFlag('with -test: list the rules that no test has matched'),
  update: booleanFlag('with -test: write what is into the lines that are not so'),
  diff: booleanFlag('say what changes, rule by rule: -diff OLD NEW'),
  replay: textFlag('file', 'play the calls of a decision log (- is standard input) against the rules of PATH'),
  now: textFlag('PATH', 'with -replay: compare with these rules, instead of with what the log says was decided'),
  html: booleanFlag('with -replay: print a page of HTML with charts'),
};

/** The program weir-check: checks rule files as the service would load them. */
export const CHECK: Program<typeof CHECK_FLAGS> = {
  name: 'weir-check',
  flags: CHECK_FLAGS,
  help: [
    `weir-check checks rule files without starting the service.

Usage: weir-check PATH… [flags]

Each PATH is a folder with rule files, a rule file, or - for standard input. With -replay they have the candidate rules: see docs/rolling-out.md.
Tests of rules: see docs/testing-rules.md.
`,
    'With BACKEND_TYPE=plaincache, rules that need a store with scripts are errors.\n' +
      'With STORE_FAILURE_POLICY=local, a warning names the rules that it does not cover, with ' +
      'BACKEND_TYPE=plaincache or\n' +
      'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true those whose `lease` has no effect. Another one says when\n' +
      'STORE_DECISION_TIMEOUT, KVSTORE_TIMEOUT or KVSTORE_PIPELINE_WINDOW do not fit the policies of the rules.\n\n' +
      'Exit codes: 0 valid, as expected, or replayed; 1 errors (or warnings with -strict), or a test ' +
      'that fails; 2 wrong use.\n',
  ],
  async run(line) {
    rejectCombinations(line.values);
    return printed(await checked(line), line.values);
  },
};

/** What weir-check has found. */
interface CheckResult extends ProgramResult {
  /** For the formats that list what is wrong. */
  readonly cases?: readonly CheckedCase[];
}

async function checked(line: Line): Promise<CheckResult> {
  const { values, rest, environment } = line;
  const paths = values.config_dir === '' ? rest : [values.config_dir, ...rest];
  if (values.test) return tested(rest, line);
  if (values.diff) return diffed(paths, line);
  const [path, ...others] = paths;
  if (path === undefined) throw new FlagError('give the folder with the rule files, or rule files');
  const explained = values.explain ? explainedRequest(others) : undefined;
  const read = await readRules(values.explain ? path : paths, readOptions(values));
  const candidate = withEnvironment(read, path, environment);
  if (explained !== undefined && candidate.errors.length === 0) {
    const explanation = await explain(explained, buildRuleset(candidate.configs));
    return { exitCode: Exit.DONE, answer: explanation, text: () => formatExplanation(explanation) };
  }
  const result = resultOf(candidate, values);
  return values.replay === '' || result.exitCode !== Exit.DONE ? result : replayed(candidate, line);
}

/** The settings that warnings about rules depend on. */
const WARNED = [
  ...['STORE_FAILURE_POLICY', 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', 'STORE_DECISION_TIMEOUT'],
  ...['KVSTORE_TIMEOUT', 'REDIS_TIMEOUT', 'KVSTORE_PIPELINE_WINDOW', 'REDIS_PIPELINE_WINDOW'],
];

/** Adds what the store of the environment cannot do to the errors, and what has no effect with it to the warnings. */
function withEnvironment(rules: CheckedRules, path: string, environment: NodeJS.ProcessEnv): CheckedRules {
  const { settings } = readSome(environment, WARNED);
  const isLocal = settings.storeFailurePolicy === 'local';
  const can = abilitiesAtCheck(environment);
  const isUsual = can.leases === true && WARNED.every((name) => environment[name] === undefined);
  if (rules.errors.length > 0 || isUsual) return rules;
  const ruleset = buildRuleset(rules.configs);
  const error = beyondStore(ruleset, can);
  if (error !== undefined) return { ...rules, errors: [error] };
  const found = [
    ['local-policy-with-algorithm', isLocal ? notLocalWarning(ruleset) : undefined],
    ['times-without-effect', can.hasTimeout ? timesWarning(ruleset, settings) : undefined],
    ['lease-without-effect', notLeasedWarning(ruleset, can, settings)],
  ] as const;
  const warnings = found.flatMap(([code, message]) => {
    // Of a rule's own policy, the first one is an error.
    return message === undefined ? [] : [{ ...folderProblem(path, { code, message }), severity: 'warning' as const }];
  });
  return { ...rules, warnings: [...rules.warnings, ...warnings] };
}

type Values = FlagValues<typeof CHECK_FLAGS>;
type Line = CommandLine<typeof CHECK_FLAGS>;

function rejectCombinations(values: Values): void {
  const { replay: log, now, html, explain: explains, test, diff, coverage, update } = values;
  if (log === '' && (now !== '' || html)) throw new FlagError('flags -now and -html require -replay');
  if (!test && (coverage || update)) throw new FlagError('flags -coverage and -update require -test');
  const works = Object.entries({ replay: log !== '', explain: explains, test }).filter(([, isGiven]) => isGiven);
  const [[one] = [], [other] = []] = diff && log === '' ? [...works, ['diff']] : works;
  if (other !== undefined) throw new FlagError(`flags -${one} and -${other} exclude each other`);
  const format = formatOf(values);
  if (html && format !== 'text') throw new FlagError(`flags -html and -format ${format} exclude each other`);
  const allowed = diff ? DIFF_FORMATS : log !== '' || explains ? ANSWER_FORMATS : FINDING_FORMATS;
  if (!allowed.includes(format))
    throw new FlagError(`-format ${format} is not possible here: ${allowed.join(', ')} are`);
}

const ANSWER_FORMATS: readonly Format[] = ['text', 'json'];
const DIFF_FORMATS: readonly Format[] = [...ANSWER_FORMATS, 'markdown'];
const FINDING_FORMATS = FORMATS.filter((format) => format !== 'markdown');

function formatOf({ format, json }: Values): Format {
  return json ? 'json' : format;
}

/** A result in the format that is chosen; only `-diff` has Markdown, and has written its text so. */
function printed({ cases = [], ...result }: CheckResult, values: Values): ProgramResult {
  const format = formatOf(values);
  if (format === 'text') return result;
  if (format === 'markdown') return { ...result, isPlain: true };
  const shown = format === 'json' ? JSON.stringify(result.answer, null, 2) : formatCases(format, cases);
  return { ...result, isPlain: true, text: () => shown };
}

function readOptions(values: Values): ReadOptions {
  return { mergeDomainConfigs: values.merge_domain_configs, ignoreDotFiles: values.ignore_dot_files };
}

/** All problems, then a line with the totals. With `strict`, warnings count as errors. */
function resultOf({ files: paths, configs, errors, warnings }: CheckedRules, values: Values): CheckResult {
  const ok = errors.length === 0 && !(values.strict && warnings.length > 0);
  const files = paths.length;
  const domains = new Set(configs.map(({ domain }) => domain)).size;
  const rules = countRules(configs);
  const all = [...errors, ...warnings];
  function text(): string {
    const problems = all.map((problem) => `${formatProblem(problem)}\n\n`);
    const found = `${counted(errors.length, 'error')}, ${counted(warnings.length, 'warning')}`;
    const read = `${counted(files, 'file')}, ${counted(domains, 'domain')}, ${counted(rules, 'rule')}`;
    return `${problems.join('')}${ok ? 'passed' : 'failed'}: ${read}; ${found}`;
  }
  const answer = { ok, files, domains, rules, errors, warnings };
  return { exitCode: ok ? Exit.DONE : Exit.FAILED, answer, text, cases: casesOfRules(all, paths) };
}

/** Plays tests of rules. */
async function tested(paths: readonly string[], { values, environment }: Line): Promise<CheckResult> {
  if (paths.length === 0)
    throw new FlagError('give the test files: *.test.yaml, *.decisions, or folders with such files');
  const report = await runTests(await readTestFiles(paths), {
    readRules: (rules) => {
      const of = rules.length > 0 ? rules : [values.config_dir].filter((path) => path !== '');
      if (of.length === 0)
        throw new Error('a test file names no rules: write "rules: PATH", or give them with -config_dir');
      return readRules(of, readOptions(values));
    },
    optionsOf: (settings) => optionsOfTests(settings, environment),
    isUpdated: values.update,
  });
  const exitCode = report.ok ? Exit.DONE : Exit.FAILED;
  return { exitCode, answer: report, text: () => formatTests(report, values), cases: casesOf(report) };
}

/** The number of descriptors, of all levels. */
function countRules(parents: readonly Pick<RuleConfig, 'descriptors'>[]): number {
  return parents.reduce((sum, { descriptors }) => sum + descriptors.length + countRules(descriptors), 0);
}

/** Says what changes; with `-replay`, also for the calls of a log. */
async function diffed([old, candidate, ...others]: readonly string[], line: Line): Promise<CheckResult> {
  const { values } = line;
  if (old === undefined || candidate === undefined || others.length > 0) {
    throw new FlagError('give two folders or files with rules: -diff OLD NEW');
  }
  const [before, after] = [await readRules(old, readOptions(values)), await readRules(candidate, readOptions(values))];
  for (const each of [before, after]) if (each.errors.length > 0) return resultOf(each, values);
  const changes = rulesetChanges(buildRuleset(before.configs), buildRuleset(after.configs));
  const report = values.replay === '' ? undefined : await reportOfReplay(line, after, before);
  const calls = report && formatReport(report);
  function text(): string {
    if (formatOf(values) === 'markdown') return formatChangesAsMarkdown(changes, calls);
    return [formatChanges(changes), ...(calls === undefined ? [] : [calls])].join('\n\n');
  }
  return { exitCode: Exit.DONE, answer: { changes, replay: report ?? null }, text };
}

async function replayed(candidate: CheckedRules, line: Line): Promise<CheckResult> {
  const { values } = line;
  const present = values.now === '' ? undefined : await readRules(values.now, readOptions(values));
  const result = present && resultOf(present, values);
  if (result !== undefined && result.exitCode !== Exit.DONE) return result;
  const report = await reportOfReplay(line, candidate, present);
  const isFailed = values.strict && report.log.malformed > 0;
  return {
    exitCode: isFailed ? Exit.FAILED : Exit.DONE,
    answer: report,
    text: () => (values.html ? replayPage(report) : formatReport(report)),
  };
}

function reportOfReplay(
  { values, stderr: progress, environment }: Line,
  candidate: CheckedRules,
  present: CheckedRules | undefined,
): Promise<ReplayReport> {
  const now = present && buildRuleset(present.configs);
  const options = decidingOptions(environment);
  return replay({ log: values.replay, candidate: buildRuleset(candidate.configs), now, options, progress });
}

function explainedRequest([domain, ...descriptors]: readonly string[]): RateLimitRequest {
  if (domain === undefined || descriptors.length === 0) {
    throw new FlagError(
      'flag -explain requires a path, a domain and descriptors: PATH -explain DOMAIN KEY=VALUE,KEY=VALUE …',
    );
  }
  const plain = { limit: undefined, hitsAddend: NO_HITS_ADDEND, isNegativeHits: false };
  return { domain, descriptors: descriptors.map((text) => ({ entries: parseEntries(text), ...plain })), hitsAddend: 0 };
}

/** What a service that has counted nothing yet would answer: an explanation as weir-admin prints it. */
async function explain(request: RateLimitRequest, ruleset: Ruleset): Promise<Explanation> {
  const player = new Player(ruleset, DEFAULT_OPTIONS);
  try {
    return await player.explain(request, Date.now());
  } finally {
    await player.close();
  }
}

import { DEFAULT_OPTIONS, type LimiterOptions } from '../../limiter/decision';
import { Limiter } from '../../limiter/limiter';
import { NO_HITS_ADDEND, type RateLimitRequest } from '../../limiter/request';
import { explainRequest } from '../../operators/decisions';
import { folderProblem, formatProblem } from '../../rules/files/problems/problem';
import type { RuleConfig } from '../../rules/rule-config';
import { type Ruleset, buildRuleset, notLeasedWarning, notLocalWarning } from '../../rules/ruleset';
import { MemoryCounters } from '../../sinks/counters/memory/memory-counters';
import type { Explanation } from '../../operators/answers';
import { type LoadedSettings, readSettings } from '../../settings/read-settings';
import { Statistics } from '../../statistics/statistics';
import { counted } from '../../text/counted';
import { messageOf } from '../../text/thrown';
import { formatExplanation } from '../explanation';
import { FlagError, type FlagValues, booleanFlag, textFlag } from '../flags';
import { type CommandLine, Exit, JSON_FLAG, type Program, type ProgramResult } from '../program';
import { parseEntries } from '../request';
import { replayPage } from '../replay/page';
import { replay } from '../replay/replay';
import { formatReport, reportOf } from '../replay/report';
import { type CheckedRules, type ReadOptions, readRules } from './read-rules';

/** The flags of weir-check. The first two have the names of the Go service's config check. */
const CHECK_FLAGS = {
  config_dir: textFlag('PATH', 'the folder or file, like the argument PATH'),
  merge_domain_configs: booleanFlag('allow several files for one domain, like MERGE_DOMAIN_CONFIG'),
  ignore_dot_files: booleanFlag('skip names that begin with a dot, like RUNTIME_IGNOREDOTFILES'),
  strict: booleanFlag('exit with code 1 for warnings too'),
  json: JSON_FLAG,
  replay: textFlag('file', 'play the calls of a decision log (- is standard input) against the rules of PATH'),
  now: textFlag('PATH', 'with -replay: compare with these rules, instead of with what the log says was decided'),
  html: booleanFlag('with -replay: print a page of HTML with charts'),
  explain: booleanFlag('show which rule limits a call: PATH -explain DOMAIN KEY=VALUE,KEY=VALUE …'),
};

/** The program weir-check: checks rule files as the service would load them. */
export const CHECK: Program<typeof CHECK_FLAGS> = {
  name: 'weir-check',
  flags: CHECK_FLAGS,
  help: [
    `weir-check checks rule files without starting the service.

Usage: weir-check PATH [flags]

PATH is a folder with rule files, or one rule file. With -replay it has the candidate rules: see docs/replay.md.
`,
    'With STORE_FAILURE_POLICY=local, a warning names the rules that it does not cover, with BACKEND_TYPE=plaincache or\n' +
      'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true those whose `lease` has no effect.\n\n' +
      'Exit codes: 0 valid or replayed, 1 errors (or warnings with -strict), 2 wrong use.\n',
  ],
  async run(line) {
    const { values, rest, environment } = line;
    const [path, ...others] = values.config_dir === '' ? rest : [values.config_dir, ...rest];
    if (path === undefined) throw new FlagError('give the folder with the rule files, or one rule file');
    rejectCombinations(values);
    const explained = values.explain ? explainedRequest(others) : rejectRest(others);
    const candidate = withEnvironment(await readRules(path, readOptions(values)), path, environment);
    if (explained !== undefined && candidate.errors.length === 0) {
      const explanation = await explain(explained, rulesetOf(candidate));
      return { exitCode: Exit.DONE, answer: explanation, text: () => formatExplanation(explanation) };
    }
    const checked = resultOf(candidate, values);
    return values.replay === '' || checked.exitCode !== Exit.DONE ? checked : replayed(candidate, line);
  },
};

/** Adds what the environment keeps from having an effect to the warnings. */
function withEnvironment(rules: CheckedRules, path: string, environment: NodeJS.ProcessEnv): CheckedRules {
  const { settings } = readSome(environment, ['STORE_FAILURE_POLICY', 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT']);
  if (rules.errors.length > 0) return rules;
  const ruleset = rulesetOf(rules);
  const notLocal = settings.storeFailurePolicy === 'local' ? notLocalWarning(ruleset) : undefined;
  // With its address, BACKEND_TYPE would be invalid here.
  const isMemcached = /^(?:plaincache|memcache)$/i.test(environment['BACKEND_TYPE'] ?? '');
  const notLeased = notLeasedWarning(ruleset, { ...settings, backendType: isMemcached ? 'plaincache' : 'memory' });
  const warnings = [
    ...(notLocal === undefined
      ? []
      : [folderProblem(path, { code: 'local-policy-with-algorithm', message: notLocal })]),
    ...(notLeased === undefined ? [] : [folderProblem(path, { code: 'lease-without-effect', message: notLeased })]),
  ];
  return { ...rules, warnings: [...rules.warnings, ...warnings] };
}

type Values = FlagValues<typeof CHECK_FLAGS>;

function rejectCombinations({ replay: log, now, html, explain: explains, json }: Values): void {
  if (log === '' && (now !== '' || html)) throw new FlagError('flags -now and -html require -replay');
  if (log !== '' && explains) throw new FlagError('flags -replay and -explain exclude each other');
  if (html && json) throw new FlagError('flags -html and -json exclude each other');
}

function readOptions(values: Values): ReadOptions {
  return { mergeDomainConfigs: values.merge_domain_configs, ignoreDotFiles: values.ignore_dot_files };
}

function rulesetOf({ configs }: CheckedRules): Ruleset {
  return buildRuleset(configs);
}

/** All problems, then a line with the totals. With `strict`, warnings count as errors. */
function resultOf({ files, configs, errors, warnings }: CheckedRules, { strict }: Values): ProgramResult {
  const ok = errors.length === 0 && !(strict && warnings.length > 0);
  const [domains, rules] = [new Set(configs.map(({ domain }) => domain)).size, countRules(configs)];
  function text(): string {
    const problems = [...errors, ...warnings].map((problem) => `${formatProblem(problem)}\n\n`);
    const found = `${counted(errors.length, 'error')}, ${counted(warnings.length, 'warning')}`;
    const read = `${counted(files, 'file')}, ${counted(domains, 'domain')}, ${counted(rules, 'rule')}`;
    return `${problems.join('')}${ok ? 'passed' : 'failed'}: ${read}; ${found}`;
  }
  const answer = { ok, files, domains, rules, errors, warnings };
  return { exitCode: ok ? Exit.DONE : Exit.FAILED, answer, text };
}

/** The number of descriptors, of all levels. */
function countRules(parents: readonly Pick<RuleConfig, 'descriptors'>[]): number {
  return parents.reduce((sum, { descriptors }) => sum + descriptors.length + countRules(descriptors), 0);
}

async function replayed(
  candidate: CheckedRules,
  { values, stderr: progress, environment }: CommandLine<typeof CHECK_FLAGS>,
): Promise<ProgramResult> {
  const present = values.now === '' ? undefined : await readRules(values.now, readOptions(values));
  const checked = present && resultOf(present, values);
  if (checked !== undefined && checked.exitCode !== Exit.DONE) return checked;
  const now = present && rulesetOf(present);
  const options = decidingOptions(environment);
  const played = await replay({ log: values.replay, candidate: rulesetOf(candidate), now, options, progress });
  const report = reportOf(played);
  const isFailed = values.strict && report.log.malformed > 0;
  return {
    exitCode: isFailed ? Exit.FAILED : Exit.DONE,
    answer: report,
    text: () => (values.html ? replayPage(report) : formatReport(report)),
  };
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

function rejectRest([surplus]: readonly string[]): undefined {
  if (surplus !== undefined) throw new FlagError(`unexpected argument "${surplus}"`);
}

/** What a service that has counted nothing yet would answer: an explanation as weir-admin prints it. */
async function explain(request: RateLimitRequest, ruleset: Ruleset): Promise<Explanation> {
  const counters = new MemoryCounters({ maxKeys: 1, now: Date.now });
  try {
    return await explainRequest(request, ruleset, {
      limiter: new Limiter(DEFAULT_OPTIONS, new Statistics(0)),
      reservations: counters,
      apply: (operations, { settled }) => {
        counters.countNow!(operations);
        settled();
      },
    });
  } finally {
    await counters.close();
  }
}

/** The settings with which rules and counts alone do not decide a call. */
const DECIDING = ['SHADOW_MODE', 'QUOTA_MODE', 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT'] as const;

/**
 * The options of a service that decides as the environment says, without a local cache. Other settings are not read, as theirs may be
 * valid only where the service runs.
 *
 * @throws {FlagError} for values that the service would reject
 */
function decidingOptions(environment: NodeJS.ProcessEnv): LimiterOptions {
  const { settings } = readSome(environment, DECIDING);
  return {
    ...DEFAULT_OPTIONS,
    shadowMode: settings.shadowMode,
    quotaMode: settings.quotaMode,
    stopIncrementWhenOverLimit: settings.stopCacheKeyIncrementWhenOverlimit,
  };
}

function readSome(environment: NodeJS.ProcessEnv, names: readonly string[]): LoadedSettings {
  try {
    return readSettings(Object.fromEntries(names.map((name) => [name, environment[name]])));
  } catch (error) {
    throw new FlagError(messageOf(error));
  }
}

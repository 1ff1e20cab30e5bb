import type { LimiterOptions } from '../../limiter/decision';
import { Limiter } from '../../limiter/limiter';
import { NO_HITS_ADDEND, type RateLimitRequest } from '../../limiter/request';
import { explanationOf } from '../../operators/explanation';
import { LookUps } from '../../operators/look-ups';
import { type Ruleset, buildRuleset } from '../../rules/ruleset';
import { Statistics } from '../../statistics/statistics';
import type { Explanation } from '../../streams/ports/operator';
import { formatExplanation } from '../explanation';
import { FlagError, booleanFlag, textFlag } from '../flags';
import { Exit, JSON_FLAG, type Program } from '../program';
import { parseEntries } from '../request';
import { readRules } from './read-rules';
import { textReport, totalsOf } from './report';

/** The flags of weir-check. The first two have the names of the Go service's config check. */
const CHECK_FLAGS = {
  config_dir: textFlag('PATH', 'the folder or file, like the argument PATH'),
  merge_domain_configs: booleanFlag('allow several files for one domain, like MERGE_DOMAIN_CONFIG'),
  ignore_dot_files: booleanFlag('skip names that begin with a dot, like RUNTIME_IGNOREDOTFILES'),
  strict: booleanFlag('exit with code 1 for warnings too'),
  json: JSON_FLAG,
  explain: booleanFlag('show which rule limits a call: PATH -explain DOMAIN KEY=VALUE,KEY=VALUE …'),
};

/** The program weir-check: checks rule files as the service would load them. */
export const CHECK: Program<typeof CHECK_FLAGS> = {
  name: 'weir-check',
  flags: CHECK_FLAGS,
  help: [
    `weir-check checks rule files without starting the service.

Usage: weir-check PATH [flags]

PATH is a folder with rule files, or one rule file.
`,
    'Exit codes: 0 valid, 1 errors (or warnings with -strict), 2 wrong use.\n',
  ],
  async run({ values, rest }) {
    const [path, ...others] = values.config_dir === '' ? rest : [values.config_dir, ...rest];
    if (path === undefined) throw new FlagError('give the folder with the rule files, or one rule file');
    const explained = values.explain ? explainedRequest(others) : rejectRest(others);
    const result = await readRules(path, {
      mergeDomainConfigs: values.merge_domain_configs,
      ignoreDotFiles: values.ignore_dot_files,
    });
    if (explained !== undefined && result.errors.length === 0) {
      const explanation = await explain(explained, buildRuleset(result.configs, result.placeOf));
      return { exitCode: Exit.DONE, answer: explanation, text: () => formatExplanation(explanation) };
    }
    const totals = totalsOf(result, values.strict);
    const { errors, warnings } = result;
    const answer = { ...totals, errors, warnings };
    return { exitCode: totals.ok ? Exit.DONE : Exit.FAILED, answer, text: () => textReport(result, totals) };
  },
};

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

/** Those of a service with the default settings, without a local cache. */
const LIMITER_OPTIONS: LimiterOptions = {
  cacheKeyPrefix: '',
  nearLimitRatio: 0.8,
  localCacheBytes: 0,
  localCacheMaxAge: Infinity,
  stopIncrementWhenOverLimit: false,
  shadowMode: false,
  quotaMode: false,
  responseHeaders: undefined,
  dynamicMetadata: false,
};

/** What a service that has counted nothing yet would answer: an explanation as weir-admin prints it. */
function explain(request: RateLimitRequest, ruleset: Ruleset): Promise<Explanation> {
  const explained = new Limiter(LIMITER_OPTIONS, new Statistics(0)).explain(request, ruleset, Date.now());
  return explanationOf(explained, new LookUps(ruleset, request), new Map());
}

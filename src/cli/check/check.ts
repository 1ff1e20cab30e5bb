import { explainMatch } from '../../rules/explain';
import type { Entry } from '../../rules/rule-tree';
import { buildRuleset } from '../../rules/ruleset';
import { FlagError, type FlagSpec } from '../flags';
import { Exit, JSON_FLAG, type Program } from '../program';
import { explanationJson, explanationText } from './explanation';
import { readRules } from './read-rules';
import { jsonReport, textReport, totalsOf } from './report';

/** The flags of weir-check. The first two have the names of the Go service's config check. */
const CHECK_FLAGS = {
  config_dir: { kind: 'string', default: '', placeholder: 'PATH', help: 'the folder or file, like the argument PATH' },
  merge_domain_configs: { kind: 'boolean', help: 'allow several files for one domain, like MERGE_DOMAIN_CONFIG' },
  ignore_dot_files: { kind: 'boolean', help: 'skip names that begin with a dot, like RUNTIME_IGNOREDOTFILES' },
  strict: { kind: 'boolean', help: 'exit with code 1 for warnings too' },
  json: JSON_FLAG,
  explain: { kind: 'boolean', help: 'show which rule matches a descriptor: PATH -explain DOMAIN KEY=VALUE,KEY=VALUE' },
} as const satisfies FlagSpec;

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
      const { domain, entries } = explained;
      const explanation = explainMatch(buildRuleset(result.configs), { domain, entries });
      const format = values.json ? explanationJson : explanationText;
      return { exitCode: Exit.DONE, stdout: format(domain, entries, explanation) };
    }
    const totals = totalsOf(result, values.strict);
    const report = values.json ? jsonReport : textReport;
    return { exitCode: totals.ok ? Exit.DONE : Exit.FAILED, stdout: report(result, totals) };
  },
};

interface ExplainedRequest {
  readonly domain: string;
  readonly entries: readonly Entry[];
}

function explainedRequest([domain, descriptor, surplus]: readonly string[]): ExplainedRequest {
  if (domain === undefined || descriptor === undefined) {
    throw new FlagError(
      'flag -explain requires a path, a domain and a descriptor: PATH -explain DOMAIN KEY=VALUE,KEY=VALUE',
    );
  }
  rejectRest(surplus === undefined ? [] : [surplus]);
  return { domain, entries: parseEntries(descriptor) };
}

function rejectRest([surplus]: readonly string[]): undefined {
  if (surplus !== undefined) throw new FlagError(`unexpected argument "${surplus}"`);
}

/** Parses `key=value,key=value`: split at each comma, then at the first `=`. */
function parseEntries(descriptor: string): Entry[] {
  return descriptor.split(',').map((entry) => {
    const equals = entry.indexOf('=');
    return equals < 0 ? { key: entry, value: '' } : { key: entry.slice(0, equals), value: entry.slice(equals + 1) };
  });
}

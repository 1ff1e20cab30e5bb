import { explainMatch } from '../../rules/explain';
import { buildRuleset, type Entry } from '../../rules/ruleset';
import { VERSION } from '../version';
import { FlagError, type Information, flagHelp } from '../flags';
import { CHECK_FLAGS, type CheckRequest, parseCheckRequest } from './check-flags';
import { explanationJson, explanationText } from './explanation';
import { type CheckedRules, readRules } from './read-rules';
import { jsonReport, textReport, totalsOf } from './report';

/** The result of a run of weir-check. */
export interface CheckRun {
  /** 0: valid. 1: errors, or warnings with `-strict`. 2: invalid command line. */
  readonly exitCode: 0 | 1 | 2;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * The program weir-check: checks rule files as the service would load them.
 *
 * @param argv the command line without interpreter and program
 */
export async function runCheck(argv: readonly string[]): Promise<CheckRun> {
  let request: CheckRequest | Information;
  try {
    request = parseCheckRequest(argv);
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    return { exitCode: 2, stdout: '', stderr: `weir-check: ${error.message}\n${usage()}` };
  }
  if (request === 'help') return { exitCode: 0, stdout: usage(), stderr: '' };
  if (request === 'version') return { exitCode: 0, stdout: `weir-check ${VERSION}\n`, stderr: '' };
  const result = await readRules(request.path, request);
  const totals = totalsOf(result, request.strict);
  if (request.explain !== undefined && result.errors.length === 0) {
    return { exitCode: 0, stdout: explanation(result, request.explain, request.format), stderr: '' };
  }
  const stdout = request.format === 'json' ? jsonReport(result, totals) : textReport(result, totals);
  return { exitCode: totals.ok ? 0 : 1, stdout, stderr: '' };
}

function explanation(
  { configs }: CheckedRules,
  { domain, descriptor }: NonNullable<CheckRequest['explain']>,
  format: CheckRequest['format'],
): string {
  const entries = parseEntries(descriptor);
  const found = explainMatch(buildRuleset(configs), { domain, entries });
  return format === 'json' ? explanationJson(domain, entries, found) : explanationText(domain, entries, found);
}

/** Parses `key=value,key=value`: split at each comma, then at the first `=`. */
function parseEntries(descriptor: string): Entry[] {
  return descriptor.split(',').map((entry) => {
    const equals = entry.indexOf('=');
    return equals < 0 ? { key: entry, value: '' } : { key: entry.slice(0, equals), value: entry.slice(equals + 1) };
  });
}

function usage(): string {
  return `weir-check checks rule files without starting the service.

Usage: weir-check PATH [flags]

PATH is a folder with rule files, or one rule file.

${flagHelp(CHECK_FLAGS)}
Exit codes: 0 valid, 1 errors (or warnings with -strict), 2 invalid command line.
`;
}

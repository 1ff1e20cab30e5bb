import { readRuleFiles } from '../../src/rules/files/read-rule-files';
import { formatProblem } from '../../src/rules/files/problems/problem';
import { type Ruleset, buildRuleset } from '../../src/rules/ruleset';
import { unitByName } from '../../src/rules/unit';
import type { LimiterOptions } from '../../src/limiter/decision';
import type { Descriptor } from '../../src/limiter/request';
import { CODE_NAMES, Code, type DescriptorStatus, type Verdict } from '../../src/limiter/verdict';
import { descriptor } from '../support/data/requests';
import { TestService } from '../support/data/service';

/** A moment at which the windows of all units begin: a multiple of 7, 30 and 365 days. */
const START = 15_330 * 86_400_000;
const SETTINGS: Readonly<Record<string, Partial<LimiterOptions>>> = {
  'SHADOW_MODE=true': { shadowMode: true },
  'QUOTA_MODE=true': { quotaMode: true },
  'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true': { stopIncrementWhenOverLimit: true },
};
const CALL = /^(?:(?<times>\d+) × )?(?<request>.*?) +→ (?<answer>.*)$/;

/** The rules of a file; throws with its problems, warnings included. */
export function rulesetOf(yaml: string): { readonly ruleset: Ruleset; readonly domain: string } {
  const files = [{ path: 'example.yaml', content: new TextEncoder().encode(yaml) }];
  const { configs, errors, warnings } = readRuleFiles(files, { mergeDomainConfigs: false });
  const problems = [...errors, ...warnings].map(formatProblem);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return { ruleset: buildRuleset(configs), domain: configs[0]!.domain };
}

/**
 * Plays the lines of a block `decisions` on the memory store, and returns them with the answers and values that were found: the
 * same text when the block is true. docs/rules.md explains the lines.
 */
export async function playDecisions(yaml: string, block: string): Promise<string> {
  const { ruleset, domain } = rulesetOf(yaml);
  const lines = block.trimEnd().split('\n');
  const settings = lines
    .filter((line) => line.startsWith('with '))
    .map((line) => optionsOf(line.slice('with '.length)));
  const service = new TestService(ruleset, Object.assign({}, ...settings) as Partial<LimiterOptions>, START, 0);
  try {
    return `${lines.map((line) => playLine(service, domain, line)).join('\n')}\n`;
  } finally {
    await service.close();
  }
}

function optionsOf(setting: string): Partial<LimiterOptions> {
  const options = SETTINGS[setting];
  if (options === undefined) throw new Error(`no such setting in examples: ${setting}`);
  return options;
}

function playLine(service: TestService, domain: string, line: string): string {
  if (line === '' || line.startsWith('with ')) return line;
  const [, after, unit] = /^after (\d+) (\w+?)s?$/.exec(line) ?? [];
  if (after !== undefined) {
    service.now += Number(after) * unitByName(unit!)!.seconds * 1_000;
    return line;
  }
  const [, statistic, padding] = /^(?:statistic )(\S+)( +)= \d+$/.exec(line) ?? [];
  if (statistic !== undefined) return `statistic ${statistic}${padding}= ${valueOf(service, statistic)}`;
  const { times, request = '', answer = '' } = CALL.exec(line)?.groups ?? {};
  if (request === '') throw new Error(`not a line of decisions: ${line}`);
  return (
    line.slice(0, line.length - answer.length) + answersOf(service, { domain, request, times: Number(times ?? 1) })
  );
}

function valueOf(service: TestService, statistic: string): number {
  return new Map(service.statistics.entries()).get(`ratelimit.service.rate_limit.${statistic}`) ?? 0;
}

interface Call {
  readonly domain: string;
  readonly request: string;
  readonly times: number;
}

/** The answer of the last of the calls, when the overall codes of all are the same; otherwise all of these. */
function answersOf(service: TestService, { domain, request, times }: Call): string {
  const descriptors = request.split(' | ').map(descriptorOf);
  const verdicts = Array.from({ length: times }, () => service.decide({ domain, descriptors, hitsAddend: 0 }));
  const codes = new Set(verdicts.map(({ overallCode }) => overallCode));
  return codes.size === 1 ? answerOf(verdicts.at(-1)!) : [...codes].map((code) => CODE_NAMES[code]).join(', then ');
}

/** `key=value,key=value`, and after a blank `hits=2`, `subtract=2` or `limit=5/minute`. */
function descriptorOf(text: string): Descriptor {
  const [entries = '', ...fields] = text.trim().split(' ');
  return descriptor(entries, Object.assign({}, ...fields.map(fieldOf)) as Partial<Descriptor>);
}

function fieldOf(field: string): Partial<Descriptor> {
  const [, name, number, unit] = /^(\w+)=(\d+)(?:\/(\w+))?$/.exec(field) ?? [];
  if (name === 'hits') return { hitsAddend: Number(number) };
  if (name === 'subtract') return { hitsAddend: Number(number), isNegativeHits: true };
  if (name === 'limit') return { limit: { requestsPerUnit: Number(number), unit: unitByName(unit!) } };
  throw new Error(`not a field of a descriptor: ${field}`);
}

function answerOf({ overallCode, statuses }: Verdict): string {
  return `${CODE_NAMES[overallCode]}: ${statuses.map(statusOf).join(', ')}`;
}

function statusOf({ code, currentLimit, limitRemaining }: DescriptorStatus): string {
  if (code === Code.OVER_LIMIT) return 'over';
  if (currentLimit !== undefined) return `${limitRemaining} left`;
  return limitRemaining === 4_294_967_295 ? 'unlimited' : 'no limit';
}

import type { DomainConfig, RuleConfig } from '../rule-config';
import { checkRules } from './check-rules';
import { decodeText } from './decode-text';
import { readFields, type Fields } from './fields';
import { parseYaml } from './parse-yaml';
import { parsePlainYaml } from './plain-yaml';
import type { Problem } from './problem';
import { ProblemReport } from './problem-report';
import { readDescriptors, type Siblings } from './read-descriptors';
import { readText } from './read-values';
import { Reading, type RulePlace } from './reading';
import type { Place, SourceText } from './source-text';
import { showText, describeNode } from './yaml-text';
import type { YamlMap } from './yaml-tree';

/** A rule file as it was found. */
export interface RuleFile {
  /** Relative to the rule folder, for messages. */
  readonly path: string;
  readonly content: Uint8Array;
}

/** What was read. Plain data: it survives a structured clone. */
export interface ReadResult {
  /** One for each domain, in the order of the files. They mean something only when there are no errors. */
  readonly configs: readonly DomainConfig[];
  /** Every error of every file. */
  readonly errors: readonly Problem[];
  /** What loads but means less than it seems. */
  readonly warnings: readonly Problem[];
}

/** A domain of which rules are being gathered. */
interface Gathered {
  readonly descriptors: RuleConfig[];
  readonly siblings: Siblings;
  readonly source: SourceText;
  readonly place: Place;
}

/**
 * Reads rule files (document 1, section 2.1) and checks them. It never throws, whatever the bytes. A file of nothing but white
 * space and comments is skipped.
 * @param files in the order in which their rules count, which is that of their paths
 * @param options.mergeDomainConfigs joins the top-level lists of files that describe one domain, which is an error otherwise
 */
export function readRuleFiles(files: readonly RuleFile[], options: { mergeDomainConfigs: boolean }): ReadResult {
  const report = new ProblemReport();
  const domains = new Map<string, Gathered>();
  const places = new Map<RuleConfig, RulePlace>();
  for (const { path, content } of files) {
    const source = decodeText(path, content, report);
    const root = source && (parsePlainYaml(source.text) ?? parseYaml(source, report));
    if (source === undefined || root === undefined || root === null) continue;
    const reading = new Reading(source, report, places);
    if (root.kind === 'map') readDomain(reading, root, domains, options.mergeDomainConfigs);
    else {
      const message = `error loading config file: the top of the file must be a mapping, but is ${describeNode(root)}`;
      reading.say(root, 'not-a-mapping', message, 'Begin the file with `domain: <name>` and `descriptors:`.');
    }
  }
  const configs = Array.from(domains, ([domain, { descriptors }]): DomainConfig => ({ domain, descriptors }));
  if (!report.hasErrors) checkRules(configs, places, report);
  return { configs, ...report.finish(files.map(({ path }) => path)) };
}

function readDomain(reading: Reading, root: YamlMap, domains: Map<string, Gathered>, merge: boolean): void {
  const fields = readFields(reading, root, 'top level');
  const domain = readText(reading, fields, 'domain');
  const field = fields.get('domain');
  const place = field?.value ?? { offset: root.offset, end: root.offset + 1 };
  const known = domains.get(domain);
  if (domain === '') {
    const isText = field === undefined || field.value.kind === 'scalar';
    if (isText)
      reading.say(
        field?.key ?? place,
        'empty-domain',
        'config file cannot have empty domain',
        'Write `domain: <name>` at the top.',
      );
  } else if (known !== undefined && !merge) {
    const message = `duplicate domain '${showText(domain)}' in config file`;
    const advice = `${known.source.file} describes it already: join the files, or set MERGE_DOMAIN_CONFIG=true.`;
    reading.say(place, 'duplicate-domain', message, advice);
  }
  const joined = merge && domain !== '' ? known : undefined;
  const gathered = joined ?? { descriptors: [], siblings: new Map<string, RulePlace>(), source: reading.source, place };
  for (const rule of readRules(reading, fields, domain, gathered.siblings)) gathered.descriptors.push(rule);
  if (known === undefined && domain !== '') domains.set(domain, gathered);
}

function readRules(reading: Reading, fields: Fields, domain: string, siblings: Siblings): readonly RuleConfig[] {
  const rules = readDescriptors(reading, fields, domain, siblings);
  const field = fields.get('descriptors');
  const empty = field === undefined || (field.value.kind === 'list' && field.value.items.length === 0);
  if (empty && domain !== '') {
    const place = field?.key ?? fields.get('domain')?.value ?? { offset: 0, end: 1 };
    const message = 'the file has no descriptors: nothing of its domain is limited';
    reading.say(place, 'no-descriptors', message, 'Write rules under `descriptors`, or delete the file.');
  }
  return rules;
}

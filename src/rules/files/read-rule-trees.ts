import type { DomainConfig, RuleConfig } from '../rule-config';
import { checkRules } from './checks/check-rules';
import { readFields, type Fields } from './fields/fields';
import type { ProblemReport } from './problems/problem-report';
import { readDescriptors, type Siblings } from './read-descriptors';
import { readText } from './fields/read-values';
import { Reading, type RulePlace } from './fields/reading';
import type { Place, Source } from './problems/source-text';
import { showText, describeNode } from './yaml/yaml-text';
import type { YamlMap, YamlNode } from './yaml/yaml-tree';

/** The rules of one domain, as a rule file or another form of a configuration says them. */
export interface RuleTree {
  readonly source: Source;
  readonly root: YamlNode;
}

/** A domain of which rules are being gathered. */
interface Gathered {
  readonly descriptors: RuleConfig[];
  readonly siblings: Siblings;
  readonly source: Source;
  readonly place: Place;
}

/**
 * Reads trees into rules and checks them (document 1, section 2.1).
 * @param trees in the order in which their rules count
 * @param options.mergeDomainConfigs joins the top-level lists of trees that describe one domain, which is an error otherwise
 * @returns one configuration for each domain; they mean something only when the report has no errors
 */
export function readRuleTrees(
  trees: Iterable<RuleTree>,
  options: { mergeDomainConfigs: boolean },
  report: ProblemReport,
): readonly DomainConfig[] {
  const domains = new Map<string, Gathered>();
  const places = new Map<RuleConfig, RulePlace>();
  for (const { source, root } of trees) {
    const reading = new Reading(source, report, places);
    if (root.kind === 'map') readDomain(reading, root, domains, options.mergeDomainConfigs);
    else {
      const message = `error loading config file: the top of the file must be a mapping, but is ${describeNode(root)}`;
      reading.say(root, 'not-a-mapping', message, 'Begin the file with `domain: <name>` and `descriptors:`.');
    }
  }
  const configs = Array.from(domains, ([domain, { descriptors }]): DomainConfig => ({ domain, descriptors }));
  if (!report.hasErrors) checkRules(configs, places, report);
  return configs;
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

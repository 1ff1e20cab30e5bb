import type { DomainConfig, RuleConfig } from '../rule-config';
import type { PlaceOf } from '../rule-place';
import { CheckContext } from './checks/check-context';
import { checkRules } from './checks/check-rules';
import { FieldReader, mapsIn } from './fields/field-reader';
import { ReadContext, type RuleLocation } from './fields/read-context';
import type { ProblemReport } from './problems/problem-report';
import { placesIn } from './places';
import { type DescriptorLevel, readDescriptor, readDescriptors } from './read-descriptors';
import type { SourceDocument, SourceRange } from './problems/source-text';
import { showText, describeNode } from './yaml/yaml-text';
import type { YamlMap, YamlNode } from './yaml/yaml-tree';

/** The rules of one domain as a tree: a rule file, or another form of configuration converted to the same tree. */
export interface RuleTree {
  readonly source: SourceDocument;
  readonly root: YamlNode;
}

export interface RuleTreeOptions {
  /** Joins the top-level lists of trees that describe one domain; otherwise that is an error. */
  readonly mergeDomainConfigs: boolean;
}

/** The rules of trees. */
export interface ReadTrees {
  /** One for each domain, to be used only when the report has no errors. */
  readonly configs: readonly DomainConfig[];
  /** Where the rules are. */
  readonly placeOf: PlaceOf;
}

const EMPTY_DOMAIN = { code: 'empty-domain', message: 'config file cannot have empty domain' } as const;
const FILE_START: SourceRange = { offset: 0, end: 1 };

/**
 * Reads trees into rules and checks them.
 * @param trees in the order in which their rules are tried
 */
export function readRuleTrees(trees: Iterable<RuleTree>, options: RuleTreeOptions, report: ProblemReport): ReadTrees {
  const domains = new DomainCollector(options, report);
  const locations = new Map<RuleConfig, RuleLocation>();
  for (const { source, root } of trees) {
    const context = new ReadContext(source, locations, report);
    if (root.kind === 'map') {
      domains.read(context, root);
    } else if (root.kind === 'scalar' && root.plain && root.text === '') {
      const advice = 'The file has no rules: write `domain: <name>` and `descriptors:`, or delete it.';
      context.report(FILE_START, { ...EMPTY_DOMAIN, advice });
    } else {
      const message = `error loading config file: the top level of the file must be a mapping, but is ${describeNode(root)}`;
      const advice = 'Start the file with `domain: <name>` and `descriptors:`.';
      context.report(root, { code: 'not-a-mapping', message, advice });
      for (const map of mapsIn(root)) readMisplaced(context, map, domains);
    }
  }
  // A file of any domain may be missing among those that are merged.
  if (report.errorCount === 0 || !options.mergeDomainConfigs) {
    checkRules(domains.configsWithoutErrors(), new CheckContext(locations, report));
  }
  return { configs: domains.configs(), placeOf: placesIn(locations) };
}

/** Reads a mapping that is an item of a list at the top level, so that its problems are reported in the same run. */
function readMisplaced(context: ReadContext, map: YamlMap, domains: DomainCollector): void {
  const names = map.entries.map(({ key }) => (key.kind === 'scalar' ? key.text : ''));
  if (names.includes('domain') || names.includes('descriptors')) domains.read(context, map);
  else if (names.includes('key')) readDescriptor(context, map, { path: '', siblings: new Map() });
}

/** The rules of a domain that have been read so far. */
interface CollectedDomain {
  readonly descriptors: RuleConfig[];
  readonly siblings: DescriptorLevel['siblings'];
  readonly source: SourceDocument;
  hasErrors: boolean;
}

class DomainCollector {
  readonly #domains = new Map<string, CollectedDomain>();
  readonly #options: RuleTreeOptions;

  readonly #report: ProblemReport;

  constructor(options: RuleTreeOptions, report: ProblemReport) {
    this.#options = options;
    this.#report = report;
  }

  configs(): readonly DomainConfig[] {
    return Array.from(this.#domains, ([domain, { descriptors }]): DomainConfig => ({ domain, descriptors }));
  }

  configsWithoutErrors(): readonly DomainConfig[] {
    return this.configs().filter(({ domain }) => this.#domains.get(domain)?.hasErrors === false);
  }

  read(context: ReadContext, root: YamlMap): void {
    const merge = this.#options.mergeDomainConfigs;
    const errorsBefore = this.#report.errorCount;
    const fields = new FieldReader(context, 'top level', [root]);
    const domain = fields.text('domain');
    const known = this.#domains.get(domain);
    if (domain === '') reportEmptyDomain(fields);
    else if (known !== undefined && !merge) reportDuplicateDomain(fields, domain, known.source);
    const joined = merge && domain !== '' ? known : undefined;
    const collected: CollectedDomain = joined ?? {
      descriptors: [],
      siblings: new Map(),
      source: context.source,
      hasErrors: false,
    };
    const rules = readDescriptors(fields, { path: domain, siblings: collected.siblings });
    for (const rule of rules) collected.descriptors.push(rule);
    if (domain !== '') reportNoDescriptors(fields);
    if (this.#report.errorCount > errorsBefore) collected.hasErrors = true;
    if (known === undefined && domain !== '') this.#domains.set(domain, collected);
  }
}

function reportEmptyDomain(fields: FieldReader): void {
  if (fields.hasWrongType('domain')) return;
  const advice = 'Write `domain: <name>` at the top of the file.';
  fields.context.report(fields.get('domain')?.key ?? fields.start, { ...EMPTY_DOMAIN, advice });
}

function reportDuplicateDomain(fields: FieldReader, domain: string, first: SourceDocument): void {
  fields.context.report(fields.get('domain')?.value ?? fields.start, {
    code: 'duplicate-domain',
    message: `duplicate domain '${showText(domain)}' in config file`,
    advice: `${first.file} already describes this domain: join the files, or set MERGE_DOMAIN_CONFIG=true.`,
  });
}

function reportNoDescriptors(fields: FieldReader): void {
  const field = fields.get('descriptors');
  const isEmpty = field === undefined || (field.value.kind === 'list' && field.value.items.length === 0);
  if (!isEmpty) return;
  fields.context.report(field?.key ?? fields.get('domain')?.value ?? FILE_START, {
    code: 'no-descriptors',
    message: 'the file has no descriptors, so it limits nothing',
    advice: 'Write rules under `descriptors`, or delete the file.',
  });
}

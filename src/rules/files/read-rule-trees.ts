import type { DomainConfig, PlaceOf, RuleConfig } from '../rule-config';
import { checkRules } from './checks/check-rules';
import type { ProblemReport, SourceDocument, SourceRange } from './problems/source-text';
import { type DescriptorLevel, readDescriptor } from './read-descriptors';
import { type Unmatched, readUnmatched } from './read-unmatched';
import { Fields, ReadContext, type RuleLocation, checkBlanks, mapsIn } from './read-fields';
import { type YamlMap, type YamlNode, describeNode, isNull, showText } from './yaml/yaml-tree';

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
  /** Where the rules are: lines and columns are computed only for the rules that need them. */
  readonly placeOf: PlaceOf;
}

const EMPTY_DOMAIN = { code: 'empty-domain', message: 'config file cannot have empty domain' } as const;
const FILE_START: SourceRange = { offset: 0, end: 1 };

/**
 * Reads trees into rules and checks them.
 * @param trees in the order in which their rules are tried
 */
export function readRuleTrees(
  trees: Iterable<RuleTree>,
  { mergeDomainConfigs }: RuleTreeOptions,
  report: ProblemReport,
): ReadTrees {
  const domains: Domains = new Map();
  const options = { domains, mergeDomainConfigs, all: { regexes: 0 } };
  const locations = new Map<RuleConfig, RuleLocation>();
  for (const { source, root } of trees) {
    const context = new ReadContext(source, locations, report);
    if (root.kind === 'map') {
      if (!reportKubernetes(context, root)) readDomain(context, root, options);
    } else if (root.kind === 'scalar' && root.plain && root.text === '') {
      const advice = 'The file has no rules: write `domain: <name>` and `descriptors:`, or delete it.';
      context.report(FILE_START, { ...EMPTY_DOMAIN, advice });
    } else {
      const message = `error loading config file: the top level of the file must be a mapping, but is ${describeNode(root)}`;
      context.report(root, { code: 'not-a-mapping', message });
      for (const map of mapsIn(root)) readMisplaced(context, map, options);
    }
  }
  const configs = Array.from(domains.values(), ({ config, unmatched }) => ({ ...config, unmatched: unmatched?.rule }));
  // A file of any domain may be missing among those that are merged.
  if (report.errorCount === 0 || !mergeDomainConfigs) {
    checkRules(
      configs.filter(({ domain }) => domains.get(domain)?.hasErrors === false),
      locations,
    );
  }
  return { configs, placeOf: placesIn(locations) };
}

/** By a function of its own, which keeps nothing else of what was read. */
function placesIn(locations: ReadonlyMap<RuleConfig, RuleLocation>): PlaceOf {
  return (rule) => {
    const location = locations.get(rule);
    const source = location?.context.source;
    return source && { file: source.file, ...source.position(location.key) };
  };
}

/** By name, the rules of each domain that have been read so far. */
type Domains = Map<string, CollectedDomain>;

interface CollectedDomain {
  readonly config: DomainConfig & { readonly descriptors: RuleConfig[] };
  readonly level: DescriptorLevel;
  unmatched: Unmatched | undefined;
  readonly source: SourceDocument;
  hasErrors: boolean;
}

interface DomainOptions extends RuleTreeOptions {
  readonly domains: Domains;
  readonly all: DescriptorLevel['all'];
}

/** Reads a mapping that is an item of a list at the top level, so that its problems are reported in the same run. */
function readMisplaced(context: ReadContext, map: YamlMap, options: DomainOptions): void {
  const names = map.entries.map(({ key }) => (key.kind === 'scalar' ? key.text : ''));
  if (names.includes('domain') || names.includes('descriptors')) readDomain(context, map, options);
  else if (names.includes('key')) readDescriptor(context, map, topLevel('', options));
}

/** Reports an object of Kubernetes, whatever else is in it: rules are in the files that a ConfigMap has under `data`. */
function reportKubernetes(context: ReadContext, { entries }: YamlMap): boolean {
  const texts = new Map(
    entries.map(({ key, value }) => [
      key.kind === 'scalar' ? key.text : '',
      value.kind === 'scalar' ? value : undefined,
    ]),
  );
  const kind = texts.get('kind');
  if (kind === undefined || texts.get('apiVersion') === undefined || texts.has('domain')) return false;
  const [rest, advice] =
    kind.text === 'ConfigMap'
      ? [
          ': its rules are under data',
          'Give the text of each key under `data` a file of its own, as a mounted ConfigMap does.',
        ]
      : [', not a rule file', 'Keep only rule files here.'];
  context.report(kind, {
    code: 'kubernetes-object',
    message: `this is a Kubernetes ${showText(kind.text)}${rest}`,
    advice,
  });
  return true;
}

function topLevel(domain: string, { all }: DomainOptions): DescriptorLevel {
  return { path: domain, siblings: new Map(), regexes: 0, all };
}

function readDomain(context: ReadContext, root: YamlMap, options: DomainOptions): void {
  const { domains, mergeDomainConfigs } = options;
  const { source, problems } = context;
  const errorsBefore = problems.errorCount;
  const fields = new Fields(context, 'top level', [root]);
  const domain = fields.text('domain');
  const known = domains.get(domain);
  if (domain === '') reportEmptyDomain(fields);
  else if (known !== undefined && !mergeDomainConfigs) reportDuplicateDomain(fields, domain, known.source);
  checkBlanks(context, fields.get('domain')?.value, 'domain');
  const collected: CollectedDomain = (mergeDomainConfigs ? known : undefined) ?? {
    config: { domain, descriptors: [] },
    level: topLevel(domain, options),
    unmatched: undefined,
    source,
    hasErrors: false,
  };
  for (const map of fields.maps('descriptors')) {
    collected.config.descriptors.push(readDescriptor(context, map, collected.level));
  }
  collected.unmatched = readUnmatched(fields, collected.unmatched);
  if (domain !== '' && collected.unmatched === undefined) reportNoDescriptors(fields);
  if (problems.errorCount > errorsBefore) collected.hasErrors = true;
  if (known === undefined && domain !== '') domains.set(domain, collected);
}

function reportEmptyDomain(fields: Fields<'top level'>): void {
  if (fields.isWrong('domain')) return;
  const advice = 'Set `domain` to the name that callers send.';
  fields.context.report(fields.keyOf('domain'), { ...EMPTY_DOMAIN, advice });
}

function reportDuplicateDomain(fields: Fields<'top level'>, domain: string, first: SourceDocument): void {
  fields.context.report(fields.get('domain')?.value ?? fields.start, {
    code: 'duplicate-domain',
    message: `duplicate domain '${showText(domain)}' in config file`,
    advice: `${first.file} already describes this domain: put all its rules there, or set MERGE_DOMAIN_CONFIG=true.`,
  });
}

function reportNoDescriptors(fields: Fields<'top level'>): void {
  const field = fields.get('descriptors');
  const isEmpty =
    field === undefined || isNull(field.value) || (field.value.kind === 'list' && field.value.items.length === 0);
  if (!isEmpty) return;
  fields.context.report(field?.key ?? fields.get('domain')?.value ?? FILE_START, {
    code: 'no-descriptors',
    message: 'the domain has no descriptors, so it limits nothing',
  });
}

import type { DomainConfig, RuleConfig } from '../rule-config';
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
  /** Joins the rules of trees that describe one domain; otherwise that is an error. */
  readonly mergeDomainConfigs: boolean;
}

/**
 * Reads trees into rules and checks them.
 * @param trees in the order in which their rules are tried
 * @returns the rules of each tree, to be used only when the report has no errors
 */
export function readRuleTrees(
  trees: Iterable<RuleTree>,
  { mergeDomainConfigs }: RuleTreeOptions,
  report: ProblemReport,
): readonly DomainConfig[] {
  const reader = new TreeReader(mergeDomainConfigs, report);
  for (const tree of trees) reader.read(tree);
  reader.check();
  return reader.configs;
}

const EMPTY_DOMAIN = { code: 'empty-domain', message: 'config file cannot have empty domain' } as const;
const FILE_START: SourceRange = { offset: 0, end: 1 };

/** What has been read so far of a domain, in all trees. */
interface CollectedDomain {
  readonly descriptors: RuleConfig[];
  readonly level: DescriptorLevel;
  unmatched: Unmatched | undefined;
  /** The first one. */
  readonly source: SourceDocument;
  hasErrors: boolean;
}

class TreeReader {
  readonly configs: DomainConfig[] = [];
  readonly #domains = new Map<string, CollectedDomain>();
  readonly #locations = new Map<RuleConfig, RuleLocation>();
  readonly #all = { regexes: 0 };
  readonly #mergeDomainConfigs: boolean;
  readonly #report: ProblemReport;

  constructor(mergeDomainConfigs: boolean, report: ProblemReport) {
    this.#mergeDomainConfigs = mergeDomainConfigs;
    this.#report = report;
  }

  read({ source, root }: RuleTree): void {
    const context = new ReadContext(source, this.#locations, this.#report);
    if (root.kind === 'map') {
      if (!reportKubernetes(context, root)) this.#readDomain(context, root);
    } else if (root.kind === 'scalar' && root.plain && root.text === '') {
      const advice = 'The file has no rules: write `domain: <name>` and `descriptors:`, or delete it.';
      context.report(FILE_START, { ...EMPTY_DOMAIN, advice });
    } else {
      const message =
        'error loading config file: the top level of the file must be a mapping, but is ' + describeNode(root);
      context.report(root, { code: 'not-a-mapping', message });
      for (const map of mapsIn(root)) this.#readMisplaced(context, map);
    }
  }

  /** Checks what depends on all rules of a domain. */
  check(): void {
    // A file of any domain may be missing among those that are merged.
    if (this.#report.errorCount > 0 && this.#mergeDomainConfigs) return;
    const domains = [...this.#domains.values()].filter(({ hasErrors }) => !hasErrors);
    checkRules(
      domains.map(({ descriptors, unmatched }) => ({ descriptors, unmatched: unmatched?.rule })),
      this.#locations,
    );
  }

  /** Reads a mapping that is an item of a list at the top level, so that its problems are reported in the same run. */
  #readMisplaced(context: ReadContext, map: YamlMap): void {
    const names = map.entries.map(({ key }) => (key.kind === 'scalar' ? key.text : ''));
    if (names.includes('domain') || names.includes('descriptors')) this.#readDomain(context, map);
    else if (names.includes('key')) readDescriptor(context, map, this.#topLevel(''));
  }

  #topLevel(domain: string): DescriptorLevel {
    return { path: domain, siblings: new Map(), regexes: 0, all: this.#all };
  }

  #readDomain(context: ReadContext, root: YamlMap): void {
    const { source, problems } = context;
    const errorsBefore = problems.errorCount;
    const fields = new Fields(context, 'top level', [root]);
    const domain = fields.text('domain');
    const known = this.#domains.get(domain);
    const joined = this.#mergeDomainConfigs ? known : undefined;
    if (domain === '') reportEmptyDomain(fields);
    else if (known !== joined) reportDuplicateDomain(fields, domain, known!.source);
    checkBlanks(context, fields.get('domain')?.value, 'domain');
    const collected = joined ?? {
      descriptors: [],
      level: this.#topLevel(domain),
      unmatched: undefined,
      source,
      hasErrors: false,
    };
    const descriptors = fields.maps('descriptors').map((map) => readDescriptor(context, map, collected.level));
    const { unmatched: before } = collected;
    const unmatched = readUnmatched(fields, before);
    if (domain !== '' && unmatched === undefined) reportNoDescriptors(fields);
    if (problems.errorCount > errorsBefore) collected.hasErrors = true;
    if (domain === '' || known !== joined) return;
    for (const rule of descriptors) collected.descriptors.push(rule);
    collected.unmatched = unmatched;
    this.#domains.set(domain, collected);
    const own = unmatched === before ? undefined : unmatched?.rule;
    this.configs.push({ domain, file: source.file, descriptors, unmatched: own });
  }
}

/**
 * Reports an object of Kubernetes, whatever else is in it: rules are in the files that a ConfigMap has under `data`.
 */
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

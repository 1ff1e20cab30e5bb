import { type Pattern, type PatternMatch, compileRe2 } from '../../text/re2';

export type StatisticType = 'counter' | 'gauge' | 'observer';

/** What a timer is mapped to, with the options of both kinds: a mapping may inherit the one and change the other. */
export interface Observer {
  readonly kind: 'histogram' | 'summary';
  /** Upper bounds in the unit of the metric, ascending, without the infinite one. */
  readonly buckets: readonly number[];
  /** Each from 0 to 1. */
  readonly quantiles: readonly number[];
  /** Milliseconds that a sample counts towards the quantiles. */
  readonly maxAge: number;
}

/** One mapping of a mapping file in the statsd exporter's format. */
export interface Mapping {
  readonly match: Pattern;
  /** What {@link globPattern} has made the pattern of; undefined for a regular expression. */
  readonly glob: string | undefined;
  /** Undefined: statistics of every type. */
  readonly type: StatisticType | undefined;
  /** Whether matching statistics are not exported. */
  readonly isDropped: boolean;
  readonly name: Template;
  readonly help: string | undefined;
  readonly labels: Readonly<Record<string, Template>>;
  /** Whether a tag of the statistic overrides a label of the same name. */
  readonly honorLabels: boolean;
  readonly observer: Observer;
  /** Factor applied to every value. */
  readonly scale: number;
}

/** A set of mappings and the order in which they are tried. */
export interface MappingTable {
  readonly mappings: readonly Mapping[];
  /** What a timer without a mapping becomes. */
  readonly unmapped: Observer;
  /** Whether the most specific of several matching globs is used, instead of the first. */
  readonly isMostSpecificFirst: boolean;
  /**
   * Whether the window of a limit is the label `window`, and no part of the names that are mapped. Undefined: false.
   */
  readonly hasWindowLabel?: boolean;
}

export interface Mapped {
  readonly mapping: Mapping;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** A glob as a pattern: it matches the whole name, and `*` any one component between two dots. */
export function globPattern(glob: string): Pattern {
  const components = glob.split('.').map((component) => {
    return component === '*' ? '([^.]*)' : component.replaceAll(/[\\^$+?()[\]{}|]/g, String.raw`\$&`);
  });
  return new RegExp(`^${components.join(String.raw`\.`)}$`, 'u');
}

/**
 * Finds the mapping of a statistic by its name without tags: first the globs, then the regular expressions, each in
 * file order.
 */
export class Mapper {
  readonly unmapped: Observer;
  readonly hasWindowLabel: boolean;
  readonly #mappings: readonly Mapping[];

  constructor({ mappings, unmapped, isMostSpecificFirst, hasWindowLabel = false }: MappingTable) {
    this.unmapped = unmapped;
    this.hasWindowLabel = hasWindowLabel;
    const globs = mappings.filter(({ glob }) => glob !== undefined);
    // Where two globs match the same name, the more specific one has a literal where the other has its first differing
    // star.
    if (isMostSpecificFirst) globs.sort((one, other) => (stars(one) < stars(other) ? -1 : 1));
    this.#mappings = [...globs, ...mappings.filter(({ glob }) => glob === undefined)];
  }

  /** Undefined when no mapping matches. */
  map(name: string, type: StatisticType): Mapped | undefined {
    for (const mapping of this.#mappings) {
      if (mapping.type !== undefined && mapping.type !== type) continue;
      const match = mapping.match.exec(name);
      if (match === null) continue;
      const labels: Record<string, string> = {};
      for (const label in mapping.labels) labels[label] = expand(mapping.labels[label] as Template, match);
      return { mapping, name: expand(mapping.name, match), labels };
    }
    return undefined;
  }
}

function stars({ glob = '' }: Mapping): string {
  return glob.replaceAll(/[^.]+/g, (component) => (component === '*' ? '1' : '0'));
}

const REGEX_REFERENCE = /\$(?:\$|\{(?<braced>[\p{L}\p{Nd}_]+)\}|(?<bare>[\p{L}\p{Nd}_]+))/gu;
// A reference in a glob mapping extends over every letter, digit, `_` and `$`, even without a closing brace.
const GLOB_REFERENCE = /\$\{?(?<bare>[\w$]+)\}?/g;
/** A number of a template: without leading zeros. */
const NUMBER = /^(?:0|[1-9]\d*)$/;

/** What a name or the value of a label is made of: texts, and references to groups by their number or name. */
export type Template = readonly (string | { readonly written: string; readonly group: number | string })[];

/**
 * Reads a template as the statsd exporter does: `$1` or `${1}` is what the first star or group matched, `$0` the whole
 * match. A reference is as long as possible, so `$1_total` refers to `1_total`, which does not exist; such a reference
 * expands to an empty string. The groups of a regular expression may also have names, and `$$` is a `$` in its
 * template.
 *
 * @param kind of the pattern whose groups are referred to
 */
export function templateOf(text: string, kind: 'glob' | 'regex'): Template {
  const parts: Template[number][] = [];
  let end = 0;
  for (const reference of text.matchAll(kind === 'glob' ? GLOB_REFERENCE : REGEX_REFERENCE)) {
    const { 0: written, index, groups = {} } = reference;
    const group = groups['braced'] ?? groups['bare'];
    parts.push(text.slice(end, index));
    parts.push(group === undefined ? '$' : { written, group: NUMBER.test(group) ? Number(group) : group });
    end = index + written.length;
  }
  return [...parts, text.slice(end)].filter((part) => part !== '');
}

function expand(template: Template, match: PatternMatch): string {
  let text = '';
  for (const part of template) {
    if (typeof part === 'string') text += part;
    else text += (typeof part.group === 'number' ? match[part.group] : match.groups?.[part.group]) ?? '';
  }
  return text;
}

/** The references in the templates of a mapping, as written, that no capture of its match can fill. */
export function undefinedReferences({ match, name, labels }: Mapping): readonly string[] {
  // With an empty alternative it matches anything, and the match lists all groups.
  const all = compileRe2(`${match.source}|`).exec('') ?? [];
  const groups = new Set<number | string>([...all.keys(), ...Object.keys(('groups' in all && all.groups) || {})]);
  return [name, ...Object.values(labels)]
    .flat()
    .flatMap((part) => (typeof part === 'string' || groups.has(part.group) ? [] : [part.written]));
}

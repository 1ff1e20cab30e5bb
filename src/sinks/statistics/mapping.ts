import { type Pattern, compileRe2 } from './re2';

export type StatisticType = 'counter' | 'gauge' | 'observer';

export interface HistogramObserver {
  readonly kind: 'histogram';
  /** Upper bounds in the unit of the metric, ascending, without the infinite one. */
  readonly buckets: readonly number[];
}

export interface SummaryObserver {
  readonly kind: 'summary';
  /** Each from 0 to 1. */
  readonly quantiles: readonly number[];
  /** Milliseconds that a sample counts towards the quantiles. */
  readonly maxAge: number;
}

/** The kind of metric that a timer is mapped to. */
export type Observer = HistogramObserver | SummaryObserver;

/** One mapping of a mapping file in the statsd exporter's format. */
export interface Mapping {
  /** A glob as its components between the dots, where `*` matches any one; or a regular expression, which is not anchored. */
  readonly match: readonly string[] | Pattern;
  /** Undefined: statistics of every type. */
  readonly type: StatisticType | undefined;
  /** Whether matching statistics are not exported. */
  readonly isDropped: boolean;
  /** A template, as are the values of the labels. */
  readonly name: string;
  readonly help: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
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
}

export interface Mapped {
  readonly mapping: Mapping;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Finds the mapping of a statistic by its name without tags: first the globs, then the regular expressions, each in file order. */
export class Mapper {
  readonly unmapped: Observer;
  readonly #globs: readonly (Mapping & { readonly match: readonly string[] })[];
  readonly #regexes: readonly (Mapping & { readonly match: Pattern })[];

  constructor({ mappings, unmapped, isMostSpecificFirst }: MappingTable) {
    this.unmapped = unmapped;
    const globs = mappings.filter(isGlob);
    // Where two globs match the same name, the more specific one has a literal where the other has its first differing star.
    this.#globs = isMostSpecificFirst ? globs.toSorted((one, other) => (stars(one) < stars(other) ? -1 : 1)) : globs;
    this.#regexes = mappings.filter(isPattern);
  }

  /** Undefined when no mapping matches. */
  map(name: string, type: StatisticType): Mapped | undefined {
    const components = name.split('.');
    for (const mapping of this.#globs) {
      if (mapping.type !== undefined && mapping.type !== type) continue;
      const captured = matchGlob(mapping.match, components);
      if (captured !== undefined) return expanded(mapping, { groups: [name, ...captured] }, expandGlobTemplate);
    }
    for (const mapping of this.#regexes) {
      if (mapping.type !== undefined && mapping.type !== type) continue;
      const match = mapping.match.exec(name);
      if (match !== null) return expanded(mapping, { groups: match, named: match.groups }, expandRegexTemplate);
    }
    return undefined;
  }
}

function isGlob(mapping: Mapping): mapping is Mapping & { readonly match: readonly string[] } {
  return !isPattern(mapping);
}

function isPattern(mapping: Mapping): mapping is Mapping & { readonly match: Pattern } {
  return 'exec' in mapping.match;
}

function stars({ match }: { readonly match: readonly string[] }): string {
  return match.map((component) => (component === '*' ? '1' : '0')).join('');
}

function matchGlob(glob: readonly string[], components: readonly string[]): readonly string[] | undefined {
  if (glob.length !== components.length) return undefined;
  const captured: string[] = [];
  for (let index = 0; index < glob.length; index += 1) {
    if (glob[index] === '*') captured.push(components[index] as string);
    else if (glob[index] !== components[index]) return undefined;
  }
  return captured;
}

function expanded(
  mapping: Mapping,
  captures: Captures,
  expand: (template: string, captures: Captures) => string,
): Mapped {
  const labels = Object.entries(mapping.labels).map(([label, value]) => [label, expand(value, captures)] as const);
  return { mapping, name: expand(mapping.name, captures), labels: Object.fromEntries(labels) };
}

/** What a match captured: the whole name first, then its groups, undefined for a group that did not participate. */
interface Captures {
  readonly groups: readonly (string | undefined)[];
  readonly named?: Readonly<Record<string, string | undefined>> | undefined;
}

// A reference in a glob's template extends over every letter, digit, `_` and `$`, even without a closing brace.
const GLOB_REFERENCE = /\$\{?(?<reference>[\w$]+)\}?/g;
const REGEX_REFERENCE = /\$(?:\$|\{(?<braced>[\p{L}\p{Nd}_]+)\}|(?<bare>[\p{L}\p{Nd}_]+))/gu;
/** A number of a regular expression's template: without leading zeros. */
const NUMBER = /^(?:0|[1-9]\d*)$/;

/**
 * Expands the template of a name or label with the captures of a glob, as the statsd exporter does: `$1` or `${1}` is what the
 * first star matched, `$0` the whole name. A reference is as long as possible, so `$1_total` refers to `1_total`, which does not
 * exist; such a reference expands to an empty string.
 */
function expandGlobTemplate(template: string, { groups }: Captures): string {
  return template.replaceAll(GLOB_REFERENCE, (_, reference: string) =>
    /^\d+$/.test(reference) ? (groups[Number(reference)] ?? '') : '',
  );
}

/** The same for a regular expression, whose groups may also have names; `$$` is a `$`. */
function expandRegexTemplate(template: string, { groups, named }: Captures): string {
  return template.replaceAll(REGEX_REFERENCE, (written, braced?: string, bare?: string) => {
    const reference = braced ?? bare;
    if (reference === undefined) return written.slice(1);
    return (NUMBER.test(reference) ? groups[Number(reference)] : named?.[reference]) ?? '';
  });
}

/** The references of the templates, as written, that no capture of the match can fill. */
export function undefinedReferences(
  match: readonly string[] | Pattern,
  templates: readonly string[],
): readonly string[] {
  const isOfGlob = !('exec' in match);
  // With an empty alternative the regular expression matches anything, and the match lists all groups.
  const all = isOfGlob ? null : compileRe2(`${match.source}|`).exec('');
  const count = isOfGlob ? match.filter((component) => component === '*').length : (all?.length ?? 1) - 1;
  const names = Object.keys(all?.groups ?? {});
  return templates
    .flatMap((template) => [...template.matchAll(isOfGlob ? GLOB_REFERENCE : REGEX_REFERENCE)])
    .filter(({ groups = {} }) => {
      const reference = groups['reference'] ?? groups['braced'] ?? groups['bare'];
      if (reference === undefined || names.includes(reference)) return false;
      return !(isOfGlob ? /^\d+$/ : NUMBER).test(reference) || Number(reference) > count;
    })
    .map(([written]) => written);
}

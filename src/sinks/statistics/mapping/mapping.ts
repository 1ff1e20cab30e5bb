import type { Pattern } from './re2';
import { type Captures, expandGlobTemplate, expandRegexTemplate } from './templates';

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

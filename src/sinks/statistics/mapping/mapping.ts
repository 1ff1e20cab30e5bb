import { type Captured, fillInExpression, fillInGlob } from './fill-in';

export type StatisticType = 'counter' | 'gauge' | 'observer';

export interface Quantile {
  /** From 0 to 1. */
  readonly share: number;
}

/** What a timer becomes. */
export type Observer =
  | { readonly kind: 'histogram'; /** In the unit of the metric, ascending. */ readonly buckets: readonly number[] }
  | { readonly kind: 'summary'; readonly quantiles: readonly Quantile[]; /** Milliseconds. */ readonly maxAge: number };

/** One mapping, as the statsd exporter's mapping file has it. */
export interface Mapping {
  /** A glob as its parts between the dots, `*` standing for any one; or an expression that is not anchored. */
  readonly match: readonly string[] | RegExp;
  /** Undefined: statistics of every type. */
  readonly type: StatisticType | undefined;
  /** What matches is not exported. */
  readonly isDropped: boolean;
  /** May refer to what was captured, as the values of the labels may. */
  readonly name: string;
  readonly help: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** Whether a tag of the statistic goes before a label of the same name. */
  readonly honorLabels: boolean;
  readonly observer: Observer;
  readonly scale: number;
}

/** A set of mappings and how they are tried. */
export interface MappingTable {
  readonly mappings: readonly Mapping[];
  /** What a timer becomes that no mapping matches. */
  readonly unmapped: Observer;
  /** Of several globs the most exact one wins, instead of the first. */
  readonly isByExactness: boolean;
}

export interface Mapped {
  readonly mapping: Mapping;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Finds the mapping of a statistic by its name without tags: globs first, then expressions, each in the order of the file. */
export class Mapper {
  readonly unmapped: Observer;
  readonly #globs: readonly (Mapping & { readonly match: readonly string[] })[];
  readonly #expressions: readonly (Mapping & { readonly match: RegExp })[];

  constructor({ mappings, unmapped, isByExactness }: MappingTable) {
    this.unmapped = unmapped;
    const globs = mappings.filter(isGlob);
    // Of two globs that match one name, the more exact one has a part where the other has its first differing star.
    this.#globs = isByExactness ? globs.toSorted((one, other) => (stars(one) < stars(other) ? -1 : 1)) : globs;
    this.#expressions = mappings.filter(isExpression);
  }

  map(name: string, type: StatisticType): Mapped | undefined {
    const parts = name.split('.');
    for (const mapping of this.#globs) {
      if (mapping.type !== undefined && mapping.type !== type) continue;
      const captured = matchGlob(mapping.match, parts);
      if (captured !== undefined) return mapped(mapping, { groups: [name, ...captured] }, fillInGlob);
    }
    for (const mapping of this.#expressions) {
      if (mapping.type !== undefined && mapping.type !== type) continue;
      const match = mapping.match.exec(name);
      if (match !== null) return mapped(mapping, { groups: match, named: match.groups }, fillInExpression);
    }
    return undefined;
  }
}

function isGlob(mapping: Mapping): mapping is Mapping & { readonly match: readonly string[] } {
  return !(mapping.match instanceof RegExp);
}

function isExpression(mapping: Mapping): mapping is Mapping & { readonly match: RegExp } {
  return mapping.match instanceof RegExp;
}

function stars({ match }: { readonly match: readonly string[] }): string {
  return match.map((part) => (part === '*' ? '1' : '0')).join('');
}

function matchGlob(glob: readonly string[], parts: readonly string[]): readonly string[] | undefined {
  if (glob.length !== parts.length) return undefined;
  const captured: string[] = [];
  for (let at = 0; at < glob.length; at += 1) {
    if (glob[at] === '*') captured.push(parts[at] as string);
    else if (glob[at] !== parts[at]) return undefined;
  }
  return captured;
}

function mapped(
  mapping: Mapping,
  captured: Captured,
  fillIn: (template: string, captured: Captured) => string,
): Mapped {
  const labels = Object.entries(mapping.labels).map(([label, value]) => [label, fillIn(value, captured)] as const);
  return { mapping, name: fillIn(mapping.name, captured), labels: Object.fromEntries(labels) };
}

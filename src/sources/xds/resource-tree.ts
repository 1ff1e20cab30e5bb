import type {
  RateLimitConfig,
  RateLimitDescriptor,
  RateLimitPolicy,
} from '../../gen/ratelimit/config/ratelimit/v3/rls_conf';
import type { RuleTree } from '../../rules/files/read-rule-trees';
import type { ProblemLocation, SourceDocument, SourceRange } from '../../rules/files/problems/source-text';
import { showText } from '../../rules/files/yaml/yaml-tree';
import type { YamlEntry, YamlList, YamlMap, YamlNode, YamlScalar } from '../../rules/files/yaml/yaml-tree';
import type { Json } from '../../rules/rule-config';
import { UNIT_NAMES } from '../../rules/unit';

/**
 * Converts a resource to the tree of the equivalent rule file, so that both forms pass the same checks. A field with its default
 * value is omitted, as in a file. A limit always keeps its number, because a limit of 0 rejects every request.
 */
export function resourceTree(resource: RateLimitConfig): RuleTree {
  return new ResourceTree(resource);
}

/** Builds the tree. The offset of a node is its number; its name in messages is the path from the root. */
class ResourceTree implements RuleTree, SourceDocument {
  readonly file: string;
  readonly root: YamlMap;
  /** By node: its parent. */
  readonly #parents: number[] = [];
  /** By node: the field name or index that leads to it from its parent. */
  readonly #steps: (string | number)[] = [];

  constructor({ name, domain, descriptors }: RateLimitConfig) {
    this.file = name === '' ? 'a resource without a name' : `resource '${showText(name)}'`;
    this.root = this.#map(this.#node(-1, ''), (fields) => {
      fields.text('domain', domain);
      fields.list('descriptors', descriptors, (at, each) => this.#descriptor(at, each));
    });
  }

  get source(): SourceDocument {
    return this;
  }

  locate({ offset }: SourceRange): ProblemLocation {
    const path = this.#pathOf(offset);
    return { line: 0, column: 0, sourceLine: path, mark: { start: 0, length: Math.max(1, path.length) } };
  }

  position(): Pick<ProblemLocation, 'line' | 'column'> {
    return { line: 0, column: 0 };
  }

  describe({ offset }: SourceRange): string {
    return this.#pathOf(offset);
  }

  #descriptor(at: number, descriptor: RateLimitDescriptor): YamlMap {
    return this.#map(at, (fields) => {
      fields.text('key', descriptor.key);
      fields.text('value', descriptor.value);
      fields.flag('shadow_mode', descriptor.shadowMode);
      fields.flag('quota_mode', descriptor.quotaMode);
      fields.flag('detailed_metric', descriptor.detailedMetric);
      const { rateLimit, metadata, descriptors } = descriptor;
      if (rateLimit !== undefined) fields.add('rate_limit', (inner) => this.#rateLimit(inner, rateLimit));
      if (metadata !== undefined) fields.add('metadata', (inner) => this.#json(inner, metadata));
      fields.list('descriptors', descriptors, (inner, each) => this.#descriptor(inner, each));
    });
  }

  #rateLimit(
    at: number,
    { unit, unitMultiplier, requestsPerUnit, unlimited, name, replaces }: RateLimitPolicy,
  ): YamlMap {
    return this.#map(at, (fields) => {
      // A value that the enum does not define is decoded as its number.
      const number: number = unit;
      if (!unlimited || number !== 0) fields.text('unit', UNIT_NAMES[number] ?? String(number));
      if (unitMultiplier !== 0) {
        fields.add('unit_multiplier', (inner) => scalar(inner, String(unitMultiplier), true));
      }
      if (!unlimited || requestsPerUnit !== 0) {
        fields.add('requests_per_unit', (inner) => scalar(inner, String(requestsPerUnit), true));
      }
      fields.flag('unlimited', unlimited);
      fields.text('name', name);
      fields.list('replaces', replaces, (inner, each) => this.#map(inner, (its) => its.text('name', each.name)));
    });
  }

  #json(at: number, value: Json): YamlNode {
    if (typeof value === 'string') return scalar(at, value, false);
    if (Array.isArray(value)) return this.#list(at, value, (inner, each: Json) => this.#json(inner, each));
    if (typeof value === 'object' && value !== null) {
      return this.#map(at, (fields) => {
        for (const [name, each] of Object.entries(value)) fields.add(name, (inner) => this.#json(inner, each));
      });
    }
    return scalar(at, typeof value === 'number' ? numberText(value) : String(value), true);
  }

  #map(at: number, fill: (fields: MapFields) => void): YamlMap {
    const entries: YamlEntry[] = [];
    fill(
      new MapFields(
        entries,
        (step) => this.#node(at, step),
        (inner, items, of) => this.#list(inner, items, of),
      ),
    );
    return { kind: 'map', entries, offset: at, end: at + 1 };
  }

  #list<T>(at: number, items: readonly T[], nodeOf: (at: number, item: T) => YamlNode): YamlList {
    const nodes = items.map((item, index) => nodeOf(this.#node(at, index), item));
    return { kind: 'list', items: nodes, offset: at, end: at + 1 };
  }

  #node(parent: number, step: string | number): number {
    this.#parents.push(parent);
    return this.#steps.push(step) - 1;
  }

  #pathOf(node: number): string {
    let path = '';
    for (let at = node; at > 0; at = this.#parents[at] ?? 0) {
      const step = this.#steps[at];
      path = (typeof step === 'number' ? `[${step}]` : `.${step}`) + path;
    }
    return path.slice(1);
  }
}

/** The fields of a map that is being built. */
class MapFields {
  readonly #entries: YamlEntry[];
  readonly #node: (step: string) => number;
  readonly #listOf: <T>(at: number, items: readonly T[], of: (at: number, item: T) => YamlNode) => YamlList;

  constructor(
    entries: YamlEntry[],
    node: (step: string) => number,
    listOf: <T>(at: number, items: readonly T[], of: (at: number, item: T) => YamlNode) => YamlList,
  ) {
    this.#entries = entries;
    this.#node = node;
    this.#listOf = listOf;
  }

  add(name: string, nodeOf: (at: number) => YamlNode): void {
    const at = this.#node(name);
    this.#entries.push({ key: scalar(at, name, false), value: nodeOf(at) });
  }

  text(name: string, value: string): void {
    if (value !== '') this.add(name, (at) => scalar(at, value, false));
  }

  flag(name: string, value: boolean): void {
    if (value) this.add(name, (at) => scalar(at, 'true', true));
  }

  list<T>(name: string, items: readonly T[], of: (at: number, item: T) => YamlNode): void {
    if (items.length > 0) this.add(name, (at) => this.#listOf(at, items, of));
  }
}

function scalar(offset: number, text: string, plain: boolean): YamlScalar {
  return { kind: 'scalar', text, plain, tag: undefined, offset, end: offset + 1 };
}

/** Formats a number as in YAML, which has its own notation for NaN and the infinities. */
function numberText(value: number): string {
  if (Number.isNaN(value)) return '.nan';
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? '.inf' : '-.inf';
}

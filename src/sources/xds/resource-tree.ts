import type {
  RateLimitConfig,
  RateLimitDescriptor,
  RateLimitPolicy,
} from '../../gen/ratelimit/config/ratelimit/v3/rls_conf';
import type { RuleTree } from '../../rules/files/read-rule-trees';
import type { ProblemLocation, SourceDocument, SourceRange } from '../../rules/files/problems/source-text';
import { showText } from '../../rules/files/yaml/yaml-tree';
import type { YamlNode, YamlScalar } from '../../rules/files/yaml/yaml-tree';
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
  readonly root: YamlNode;
  /** By node: its parent. */
  readonly #parents: number[] = [];
  /** By node: the field name or index that leads to it from its parent. */
  readonly #steps: (string | number)[] = [];

  constructor({ name, domain, descriptors, defaultRateLimit, onUnmatched }: RateLimitConfig) {
    this.file = name === '' ? 'a resource without a name' : `resource '${showText(name)}'`;
    this.root = this.#node(
      this.#add(-1, ''),
      writtenFields({
        domain,
        descriptors: descriptors.map(writtenDescriptor),
        default_rate_limit: defaultRateLimit && writtenLimit(defaultRateLimit),
        on_unmatched: onUnmatched,
      }),
    );
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

  #node(at: number, value: Json): YamlNode {
    const range = { offset: at, end: at + 1 };
    if (Array.isArray(value)) {
      return {
        kind: 'list',
        items: value.map((each: Json, index) => this.#node(this.#add(at, index), each)),
        ...range,
      };
    }
    if (typeof value === 'object' && value !== null) {
      const entries = Object.entries(value).map(([name, each]) => {
        const inner = this.#add(at, name);
        return { key: scalar(inner, name), value: this.#node(inner, each) };
      });
      return { kind: 'map', entries, ...range };
    }
    return scalar(at, value);
  }

  /** @returns the number of a new node */
  #add(parent: number, step: string | number): number {
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

/** A descriptor as it is written in a file. */
function writtenDescriptor({ key, value, rateLimit, metadata, descriptors, ...rest }: RateLimitDescriptor): Json {
  return writtenFields({
    key,
    value,
    value_in: rest.valueIn,
    value_cidr: rest.valueCidr,
    value_regex: rest.valueRegex,
    shadow_mode: rest.shadowMode,
    enforce_percent: rest.enforcePercent,
    quota_mode: rest.quotaMode,
    detailed_metric: rest.detailedMetric,
    rate_limit: rateLimit && writtenLimit(rateLimit),
    rate_limits: rest.rateLimits.map(writtenLimit),
    all_or_nothing: rest.allOrNothing,
    metadata,
    descriptors: descriptors.map(writtenDescriptor),
  });
}

function writtenLimit({ unit, requestsPerUnit, unlimited, name, replaces, ...more }: RateLimitPolicy): Json {
  const { unitMultiplier, calendar } = more;
  // A value that the enum does not define is decoded as its number.
  const number: number = unit;
  return writtenFields({
    unit: unlimited && number === 0 ? undefined : (UNIT_NAMES[number] ?? String(number)),
    unit_multiplier: unitMultiplier === 0 ? undefined : unitMultiplier,
    calendar: calendar && writtenFields({ time_zone: calendar.timeZone, starts_on: calendar.startsOn }),
    requests_per_unit: unlimited && requestsPerUnit === 0 ? undefined : requestsPerUnit,
    algorithm: more.algorithm,
    burst: more.burst === 0 ? undefined : more.burst,
    unlimited,
    name,
    replaces: replaces.map((each) => writtenFields({ name: each.name })),
  });
}

/** Omits the fields that have their default values. */
function writtenFields(fields: Readonly<Record<string, Json | undefined>>): Json {
  const written: Record<string, Json> = {};
  for (const [name, value] of Object.entries(fields)) {
    const isEmpty = Array.isArray(value) && value.length === 0;
    if (value !== undefined && value !== '' && value !== false && !isEmpty) written[name] = value;
  }
  return written;
}

function scalar(offset: number, value: string | number | boolean | null): YamlScalar {
  const text = typeof value === 'number' ? numberText(value) : String(value);
  return { kind: 'scalar', text, plain: typeof value !== 'string', tag: undefined, offset, end: offset + 1 };
}

/** Formats a number as in YAML, which has its own notation for NaN and the infinities. */
function numberText(value: number): string {
  if (Number.isNaN(value)) return '.nan';
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? '.inf' : '-.inf';
}

import type { Duration } from '../../gen/google/protobuf/duration';
import type { RateLimitConfig } from '../../gen/ratelimit/config/ratelimit/v3/rls_conf';
import type { RuleTree } from '../../rules/files/read-rule-trees';
import { FIELDS, type FieldType } from '../../rules/files/rule-fields';
import type { SourceDocument, SourceRange } from '../../rules/files/problems/source-text';
import { type YamlNode, type YamlScalar, showText } from '../../rules/files/yaml/yaml-tree';
import { type Json, nameInFiles } from '../../rules/rule-config';
import { UNIT_NAMES } from '../../rules/unit';

/**
 * Converts a resource to the tree of the equivalent rule file, so that both forms pass the same checks. A field with
 * its default value is omitted, as in a file. A limit always keeps its number, because a limit of 0 rejects every
 * request.
 */
export function resourceTree({ name, ...rules }: RateLimitConfig): RuleTree {
  /** By the offset of a node, which is its number: its parent, and the field name or index that leads to it there. */
  const parents: number[] = [];
  const steps: (string | number)[] = [];
  function nodeOf(value: Json, parent: number, step: string | number): YamlNode {
    parents.push(parent);
    const offset = steps.push(step) - 1;
    const range = { offset, end: offset + 1 };
    if (Array.isArray(value)) {
      return { kind: 'list', items: value.map((each: Json, index) => nodeOf(each, offset, index)), ...range };
    }
    if (typeof value !== 'object' || value === null) return scalar(offset, value);
    const entries = Object.entries(value).map(([field, each]) => {
      const inner = nodeOf(each, offset, field);
      return { key: scalar(inner.offset, field), value: inner };
    });
    return { kind: 'map', entries, ...range };
  }
  /** The path from the root, which names a node in messages. */
  function pathOf({ offset }: SourceRange): string {
    let path = '';
    for (let at = offset; at > 0; at = parents[at] ?? 0) {
      const step = steps[at];
      path = (typeof step === 'number' ? `[${step}]` : `.${step}`) + path;
    }
    return path.slice(1);
  }
  const source: SourceDocument = {
    file: name === '' ? 'a resource without a name' : `resource '${showText(name)}'`,
    locate: (range) => {
      const path = pathOf(range);
      return { line: 0, column: 0, sourceLine: path, mark: { start: 0, length: Math.max(1, path.length) } };
    },
    position: () => ({ line: 0, column: 0 }),
    describe: pathOf,
  };
  return { source, root: nodeOf(written(rules), -1, '') };
}

/**
 * A message as it is written in a file: by the names of the protocol, without the fields that have their default
 * values.
 */
function written(message: object): Json {
  const fields: Record<string, Json> = {};
  // Neither has a unit, nor a number, which are 0.
  const isUnlimited =
    ('unlimited' in message && message.unlimited === true) ||
    ('maxConcurrent' in message && message.maxConcurrent !== undefined);
  const entries: readonly (readonly [name: string, value: Json | undefined])[] = Object.entries(message);
  for (const [name, value] of entries) {
    const field = nameInFiles(name);
    if (field === 'large_requests_per_unit') {
      // An older instance reads the number before it.
      if (value !== undefined && Number(value) !== 0) fields['requests_per_unit'] = Number(value);
      continue;
    }
    const inFile = value === undefined ? undefined : writtenValue(field, value, isUnlimited);
    if (inFile !== undefined) fields[field] = inFile;
  }
  return fields;
}

/** Fields whose least number is not 0: the protocol has 0 for an absent one. */
const ABSENT_AT_0 = fieldsThat(({ least }) => least !== undefined);
const KEPT_FALSE = fieldsThat(({ isKeptFalse }) => isKeptFalse === true);

function fieldsThat(are: (type: FieldType) => boolean): ReadonlySet<string> {
  const fields = Object.values(FIELDS).flatMap((section) => Object.entries<FieldType>(section));
  return new Set(fields.flatMap(([name, type]) => (are(type) ? [name] : [])));
}

/** Undefined for a default value. */
function writtenValue(field: string, value: Json, isUnlimited: boolean): Json | undefined {
  if (field === 'metadata') return value;
  if (field === 'max_concurrent') return value;
  if (value === 0 && (isUnlimited || ABSENT_AT_0.has(field))) return undefined;
  // A value that the enum does not define is decoded as its number.
  if (field === 'unit' && typeof value === 'number') return UNIT_NAMES[value] ?? String(value);
  if (value === '' || (value === false && !KEPT_FALSE.has(field))) return undefined;
  if (typeof value !== 'object' || value === null) return value;
  if ('nanos' in value) return durationText(value as unknown as Duration);
  if (!Array.isArray(value)) return written(value);
  const items = value.map((each: Json) => (typeof each === 'object' && each !== null ? written(each) : each));
  return items.length === 0 ? undefined : items;
}

/** As a file has it, where what is no whole number of seconds is an error. */
function durationText({ seconds, nanos }: Duration): string {
  return `${seconds}s${nanos === 0 ? '' : `${nanos}ns`}`;
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

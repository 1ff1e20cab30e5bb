import type { Json, JsonObject } from '../rule-config';
import { type Fields, type ReadContext, isMergeKey, mergeSources, repeatedKey } from './read-fields';
import {
  type YamlEntry,
  type YamlMap,
  type YamlNode,
  type YamlScalar,
  booleanOf,
  describeNode,
  isNull,
  numberOf,
  printNode,
  printScalar,
  scalarType,
  showText,
} from './yaml/yaml-tree';

/**
 * `metadata`: any mapping that can be represented in JSON. It extends those under it, whose values it replaces key by
 * key.
 */
export function readMetadata(fields: Fields<'descriptor'>): JsonObject | undefined {
  const field = fields.get('metadata');
  if (field === undefined || isNull(field.value)) return undefined;
  const { value, under } = field;
  const reader = new MetadataReader(fields.context);
  if (value.kind === 'map') return reader.object([...under, value], writtenName);
  reader.reject(value, `it must be a mapping, but is ${describeNode(value)}`, 'Write `key: value` lines below it.');
  return undefined;
}

type NameOf = (key: YamlScalar) => string;

/** An object whose members are collected. */
interface Members {
  readonly values: Map<string, Json>;
  readonly nameOf: NameOf;
}

/**
 * The name of a key at the top level of `metadata`: its source text. The Go service reads only these keys as text; it
 * prints the values of those nested in them.
 */
function writtenName(key: YamlScalar): string {
  return isNull(key) ? '' : key.text;
}

class MetadataReader {
  readonly #context: ReadContext;

  constructor(context: ReadContext) {
    this.#context = context;
  }

  /** @param layers the lowest first */
  object(layers: readonly YamlMap[], nameOf: NameOf): JsonObject {
    const members: Members = { values: new Map(), nameOf };
    for (const layer of layers) this.#addMembers(members, layer, false);
    return Object.fromEntries(members.values);
  }

  reject(node: YamlNode, reason: string, advice: string): void {
    this.#context.report(node, { code: 'invalid-metadata', message: `error parsing metadata: ${reason}`, advice });
  }

  #addMembers(members: Members, map: YamlMap, merged: boolean): void {
    const own = new Map<string, YamlNode>();
    for (const entry of map.entries) {
      if (isMergeKey(entry.key)) {
        for (const source of mergeSources(this.#context, entry)) this.#addMembers(members, source, true);
        continue;
      }
      const name = this.#nameOf(entry, members.nameOf);
      if (name === undefined) continue;
      const before = own.get(name);
      if (before !== undefined && !merged)
        this.#context.report(entry.key, repeatedKey(this.#context, showText(name), before));
      own.set(name, entry.key);
      members.values.set(name, this.#value(entry.value));
    }
  }

  #nameOf({ key }: YamlEntry, nameOf: NameOf): string | undefined {
    if (key.kind === 'scalar') return nameOf(key);
    const advice = 'Metadata is sent as JSON, which allows only text keys.';
    this.reject(key, `a key must be text, but is ${printNode(key)}`, advice);
    return undefined;
  }

  #value(node: YamlNode): Json {
    if (node.kind === 'map') return this.object([node], printScalar);
    if (node.kind === 'list') return node.items.map((item) => this.#value(item));
    return this.#scalar(node);
  }

  #scalar(scalar: YamlScalar): Json {
    switch (scalarType(scalar)) {
      case 'null':
        return null;
      case 'boolean':
        return booleanOf(scalar);
      case 'integer':
      case 'float': {
        const number = numberOf(scalar);
        if (Number.isFinite(number)) return number;
        this.reject(scalar, `JSON cannot represent the number \`${scalar.text}\``, 'Quote it to send it as text.');
        return null;
      }
      default:
        return scalar.text;
    }
  }
}

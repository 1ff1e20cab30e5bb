import type { Json, JsonObject } from '../rule-config';
import { isNull, type FieldReader } from './fields/field-reader';
import { isMergeKey, mergeSources, repeatedKey } from './fields/merge-fields';
import type { ReadContext } from './fields/read-context';
import { booleanOf, numberOf, scalarType } from './yaml/yaml-scalar';
import type { YamlEntry, YamlMap, YamlNode, YamlScalar } from './yaml/yaml-tree';
import { describeNode, printNode, showText } from './yaml/yaml-text';

/** `metadata`: any mapping that can be represented in JSON. */
export function readMetadata(fields: FieldReader): JsonObject | undefined {
  const field = fields.get('metadata');
  if (field === undefined) return undefined;
  const { value } = field;
  const reader = new MetadataReader(fields.context);
  if (value.kind === 'map') return reader.object(value);
  if (isNull(value)) fields.reportEmpty('metadata', 'the rule has none');
  else
    reader.reject(value, `it must be a mapping, but is ${describeNode(value)}`, 'Write `key: value` lines below it.');
  return undefined;
}

class MetadataReader {
  readonly #context: ReadContext;

  constructor(context: ReadContext) {
    this.#context = context;
  }

  object(map: YamlMap): JsonObject {
    const members = new Map<string, Json>();
    this.#addMembers(members, map, false);
    return Object.fromEntries(members);
  }

  reject(node: YamlNode, reason: string, advice: string): void {
    this.#context.report(node, { code: 'invalid-metadata', message: `error parsing metadata: ${reason}`, advice });
  }

  #addMembers(members: Map<string, Json>, map: YamlMap, merged: boolean): void {
    const own = new Map<string, YamlNode>();
    for (const entry of map.entries) {
      if (isMergeKey(entry.key)) {
        for (const source of mergeSources(this.#context, entry)) this.#addMembers(members, source, true);
        continue;
      }
      const name = this.#nameOf(entry);
      if (name === undefined) continue;
      const before = own.get(name);
      if (before !== undefined && !merged)
        this.#context.report(entry.key, repeatedKey(showText(name), this.#context.describe(before)));
      own.set(name, entry.key);
      members.set(name, this.#value(entry.value));
    }
  }

  #nameOf({ key }: YamlEntry): string | undefined {
    if (key.kind === 'scalar') return key.text;
    const advice = 'Metadata is sent as JSON, which allows only text keys.';
    this.reject(key, `a key must be text, but is ${printNode(key)}`, advice);
    return undefined;
  }

  #value(node: YamlNode): Json {
    if (node.kind === 'map') return this.object(node);
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

import type { Json, JsonObject } from '../rule-config';
import type { ProblemDetails } from './problems/problem';
import { type Fields, type ReadContext, isMergeKey, mergeSources, repeatedKey } from './read-fields';
import {
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
  const { context } = fields;
  if (value.kind === 'map') return objectOf(context, [...under, value], writtenName);
  const reason = `it must be a mapping, but is ${describeNode(value)}`;
  context.report(value, problem(reason, 'Write `key: value` lines below it.'));
  return undefined;
}

/**
 * The name of a key at the top level of `metadata`: its source text. The Go service reads only these keys as text; it
 * prints the values of those nested in them.
 */
function writtenName(key: YamlScalar): string {
  return isNull(key) ? '' : key.text;
}

function problem(reason: string, advice: string): ProblemDetails {
  return { code: 'invalid-metadata', message: `error parsing metadata: ${reason}`, advice };
}

/** @param layers the lowest first */
function objectOf(context: ReadContext, layers: readonly YamlMap[], nameOf: (key: YamlScalar) => string): JsonObject {
  const values = new Map<string, Json>();
  function add(map: YamlMap, merged: boolean): void {
    const own = new Map<string, YamlNode>();
    for (const entry of map.entries) {
      const { key } = entry;
      if (isMergeKey(key)) for (const source of mergeSources(context, entry)) add(source, true);
      else if (key.kind === 'scalar') {
        const name = nameOf(key);
        const before = own.get(name);
        if (before !== undefined && !merged) context.report(key, repeatedKey(context, showText(name), before));
        own.set(name, key);
        values.set(name, valueOf(context, entry.value));
      } else {
        const advice = 'Metadata is sent as JSON, which allows only text keys.';
        context.report(key, problem(`a key must be text, but is ${printNode(key)}`, advice));
      }
    }
  }
  for (const layer of layers) add(layer, false);
  return Object.fromEntries(values);
}

function valueOf(context: ReadContext, node: YamlNode): Json {
  if (node.kind === 'map') return objectOf(context, [node], printScalar);
  if (node.kind === 'list') return node.items.map((item) => valueOf(context, item));
  switch (scalarType(node)) {
    case 'null':
      return null;
    case 'boolean':
      return booleanOf(node);
    case 'integer':
    case 'float': {
      const number = numberOf(node);
      if (Number.isFinite(number)) return number;
      const reason = `JSON cannot represent the number \`${node.text}\``;
      context.report(node, problem(reason, 'Quote it to send it as text.'));
      return null;
    }
    default:
      return node.text;
  }
}

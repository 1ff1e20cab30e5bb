import type { Json, JsonObject } from '../rule-config';
import { isMergeKey, mergeSources, type Fields } from './fields/fields';
import { isNull, sayEmpty } from './fields/read-values';
import type { Reading } from './fields/reading';
import { booleanOf, numberOf, scalarType } from './yaml/yaml-scalar';
import type { YamlEntry, YamlMap, YamlNode, YamlScalar } from './yaml/yaml-tree';
import { describeNode, printNode, showText } from './yaml/yaml-text';

/** `metadata`: any mapping that can be said in JSON. */
export function readMetadata(reading: Reading, fields: Fields): JsonObject | undefined {
  const field = fields.get('metadata');
  if (field === undefined) return undefined;
  const { value } = field;
  if (value.kind === 'map') return objectOf(reading, value);
  if (isNull(value)) sayEmpty(reading, 'metadata', field, 'the rule has none');
  else
    sayInvalid(
      reading,
      value,
      `it must be a mapping, but is ${describeNode(value)}`,
      'Write keys and values below it.',
    );
  return undefined;
}

function objectOf(reading: Reading, map: YamlMap): JsonObject {
  const members = new Map<string, Json>();
  gather(reading, map, members, false);
  return Object.fromEntries(members);
}

function gather(reading: Reading, map: YamlMap, members: Map<string, Json>, merged: boolean): void {
  const own = new Map<string, YamlNode>();
  for (const entry of map.entries) {
    if (isMergeKey(entry.key)) {
      for (const source of mergeSources(reading, entry)) gather(reading, source, members, true);
      continue;
    }
    const name = nameOf(reading, entry);
    if (name === undefined) continue;
    const before = own.get(name);
    if (before !== undefined && !merged) {
      const message = `\`${showText(name)}\` stands here a second time; the first is in ${reading.nameOf(before, reading.source)}`;
      reading.say(entry.key, 'repeated-key', message, 'Keep one of the two: the last one counts.');
    }
    own.set(name, entry.key);
    members.set(name, jsonOf(reading, entry.value));
  }
}

function nameOf(reading: Reading, { key }: YamlEntry): string | undefined {
  if (key.kind === 'scalar') return key.text;
  sayInvalid(
    reading,
    key,
    `a key must be text, but is ${printNode(key)}`,
    'JSON, which metadata is sent as, has text keys only.',
  );
  return undefined;
}

function jsonOf(reading: Reading, node: YamlNode): Json {
  if (node.kind === 'map') return objectOf(reading, node);
  if (node.kind === 'list') return node.items.map((item) => jsonOf(reading, item));
  return scalarOf(reading, node);
}

function scalarOf(reading: Reading, scalar: YamlScalar): Json {
  switch (scalarType(scalar)) {
    case 'null':
      return null;
    case 'boolean':
      return booleanOf(scalar);
    case 'integer':
    case 'float': {
      const number = numberOf(scalar);
      if (Number.isFinite(number)) return number;
      sayInvalid(reading, scalar, `JSON has no number \`${scalar.text}\``, 'Put it in quotes to send it as text.');
      return null;
    }
    default:
      return scalar.text;
  }
}

function sayInvalid(reading: Reading, node: YamlNode, reason: string, advice: string): void {
  reading.say(node, 'invalid-metadata', `error parsing metadata: ${reason}`, advice);
}

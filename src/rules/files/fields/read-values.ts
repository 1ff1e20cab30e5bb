import type { Reading } from './reading';
import { booleanOf, scalarType } from '../yaml/yaml-scalar';
import type { Field, Fields } from './fields';
import type { YamlList, YamlMap, YamlNode } from '../yaml/yaml-tree';
import { describeNode, printNode } from '../yaml/yaml-text';

/**
 * A text field: its source text, whatever type it would be elsewhere (`value: 010` is `010`, `value: yes` is `yes`). Empty when
 * it is not there or null.
 */
export function readText(reading: Reading, fields: Fields, name: string): string {
  const field = fields.get(name);
  if (field === undefined) return '';
  const { value } = field;
  if (value.kind !== 'scalar') {
    sayWrongType(reading, name, value, 'text', 'Write one text here.');
    return '';
  }
  return scalarType(value) === 'null' ? '' : value.text;
}

/** A boolean field: false when it is not there or null. */
export function readBoolean(reading: Reading, fields: Fields, name: string): boolean {
  const field = fields.get(name);
  if (field === undefined) return false;
  const { value } = field;
  if (value.kind === 'scalar') {
    const type = scalarType(value);
    if (type === 'boolean') return booleanOf(value);
    if (type === 'null') {
      sayEmpty(reading, name, field, 'it counts as false');
      return false;
    }
  }
  sayWrongType(reading, name, value, 'true or false', 'Write `true` or `false`, without quotes.');
  return false;
}

/** A field that holds a list of mappings; `consequence` says what an empty one means. */
export function readList(reading: Reading, fields: Fields, name: string, consequence: string): readonly YamlMap[] {
  const list = listOf(reading, fields.get(name), name, consequence);
  if (list === undefined) return [];
  return list.items.filter((item): item is YamlMap => {
    if (item.kind === 'map') return true;
    const message = `config error, yaml file contains list of type other than map: ${printNode(item)}`;
    reading.say(item, 'list-item-not-a-mapping', message, `Each item of \`${name}\` is a mapping: \`- key: value\`.`);
    return false;
  });
}

function listOf(reading: Reading, field: Field | undefined, name: string, consequence: string): YamlList | undefined {
  if (field === undefined) return undefined;
  const { value } = field;
  if (value.kind === 'list') return value;
  if (isNull(value)) {
    sayEmpty(reading, name, field, consequence);
  } else {
    sayWrongType(reading, name, value, 'a list', 'Begin each item with `- `.');
  }
  return undefined;
}

/** Whether a node is nothing: not written, `~` or `null`. */
export function isNull(node: YamlNode): boolean {
  return node.kind === 'scalar' && scalarType(node) === 'null';
}

/** Says that a field stands there without a value, and what that means. */
export function sayEmpty(reading: Reading, name: string, { key }: Field, consequence: string): void {
  reading.say(key, 'empty-field', `\`${name}\` is empty: ${consequence}`, 'Give it a value, or take it out.');
}

/** Says that a field holds something of another type than it should. */
export function sayWrongType(reading: Reading, name: string, value: YamlNode, wanted: string, advice: string): void {
  const message = `error loading config file: \`${name}\` must be ${wanted}, but is ${describeNode(value)}`;
  reading.say(value, 'wrong-type', message, advice);
}

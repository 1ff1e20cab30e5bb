import type { RuleConfig } from '../rule-config';
import { checkEffect } from './checks/check-effect';
import { readFields, type Fields } from './fields/fields';
import { readMetadata } from './read-metadata';
import { readRateLimit, type ReadRateLimit } from './read-rate-limit';
import { readBoolean, readList, readText, sayEmpty } from './fields/read-values';
import type { Reading, RulePlace } from './fields/reading';
import { oneLine, showText } from './yaml/yaml-text';
import type { YamlMap } from './yaml/yaml-tree';

/** The rules of one level that have been read, by key and value: a second of the same is a duplicate. */
export type Siblings = Map<string, RulePlace>;

/**
 * The `descriptors` of a mapping as rules.
 * @param path the key path of the level above, beginning with the domain, for messages
 * @param siblings rules of the same level that another file has brought; those read here are added
 */
export function readDescriptors(reading: Reading, owner: Fields, path: string, siblings: Siblings): RuleConfig[] {
  const consequence = 'there are no rules in it';
  return readList(reading, owner, 'descriptors', consequence).map((item) =>
    readDescriptor(reading, item, path, siblings),
  );
}

function readDescriptor(reading: Reading, map: YamlMap, path: string, siblings: Siblings): RuleConfig {
  const fields = readFields(reading, map, 'descriptor');
  const key = readKey(reading, map, fields);
  const value = readValue(reading, fields);
  const ownPath = `${path}.${key}${value === '' ? '' : `_${value}`}`;
  const limit = readRateLimit(reading, fields);
  const rule: RuleConfig = {
    key,
    value,
    rateLimit: limit?.config,
    shadowMode: readBoolean(reading, fields, 'shadow_mode'),
    quotaMode: readBoolean(reading, fields, 'quota_mode'),
    detailedMetric: readBoolean(reading, fields, 'detailed_metric'),
    valueToMetric: readBoolean(reading, fields, 'value_to_metric'),
    shareThreshold: readBoolean(reading, fields, 'share_threshold'),
    metadata: readMetadata(reading, fields),
    descriptors: readDescriptors(reading, fields, ownPath, new Map()),
  };
  const place = placeOf(reading, map, fields, limit);
  reading.places.set(rule, place);
  if (key === '') return rule;
  checkDuplicate(reading, rule, place, ownPath, siblings);
  checkEffect(reading, rule, fields);
  return rule;
}

function readKey(reading: Reading, map: YamlMap, fields: Fields): string {
  const key = readText(reading, fields, 'key');
  const field = fields.get('key');
  if (key === '' && (field === undefined || field.value.kind === 'scalar')) {
    const place = field?.key ?? { offset: map.offset, end: map.offset + 1 };
    reading.say(place, 'empty-key', 'descriptor has empty key', 'Write `key: <key of a request entry>`.');
  }
  if (field !== undefined && key.includes('*')) {
    const message = `the \`*\` in the key '${showText(key)}' stands for itself: only a \`value\` has wildcards`;
    reading.say(field.value, 'wildcard-in-key', message, 'Write the key in full.');
  }
  return key;
}

function readValue(reading: Reading, fields: Fields): string {
  const value = readText(reading, fields, 'value');
  const field = fields.get('value');
  if (value === '' && field?.value.kind === 'scalar') sayEmpty(reading, 'value', field, 'the rule matches any value');
  return value;
}

function checkDuplicate(reading: Reading, rule: RuleConfig, place: RulePlace, path: string, siblings: Siblings): void {
  // The key's length in front tells key `a_b` with value `c` from key `a` with value `b_c`.
  const identity = `${rule.key.length} ${rule.key}${rule.value}`;
  const first = siblings.get(identity);
  if (first === undefined) {
    siblings.set(identity, place);
    return;
  }
  const message = `duplicate descriptor composite key '${oneLine(path)}'`;
  const advice = `The same key and value stand in ${reading.nameOf(first.key, first.source)}; keep one, or put what is nested in both into one.`;
  reading.say(place.key, 'duplicate-descriptor', message, advice);
}

function placeOf(reading: Reading, map: YamlMap, fields: Fields, limit: ReadRateLimit | undefined): RulePlace {
  const key = fields.get('key')?.value ?? { offset: map.offset, end: map.offset + 1 };
  return {
    source: reading.source,
    key,
    value: fields.get('value')?.value ?? key,
    requestsPerUnit: limit?.requestsPerUnit,
    replaces: limit?.replaces ?? [],
    detailedMetric: fields.get('detailed_metric')?.key,
    valueToMetric: fields.get('value_to_metric')?.key,
  };
}

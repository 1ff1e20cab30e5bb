import { ALL_KEYS, isKnownAnywhere, isKnownIn, KNOWN_KEYS, sectionsOf, type Section } from './known-keys';
import { KEY_TOLERANCE, nearestName } from '../../../text/nearest-name';
import type { Reading } from './reading';
import { scalarType } from '../yaml/yaml-scalar';
import type { YamlEntry, YamlMap, YamlNode } from '../yaml/yaml-tree';
import { describeNode, printNode, showText } from '../yaml/yaml-text';

/** A known key of a mapping with what it was given. */
export interface Field {
  readonly key: YamlNode;
  /** The value that counts. */
  readonly value: YamlNode;
  /** Mappings that the value is laid over, the first lowest: only `rate_limit` is joined so, everything else is replaced. */
  readonly under: readonly YamlMap[];
  /** It came in by `<<`. */
  readonly merged: boolean;
}

const WHERE: Readonly<Record<Section, string>> = {
  'top level': 'at the top of the file',
  descriptor: 'in a descriptor',
  rate_limit: 'in `rate_limit`',
  replaces: 'in an entry of `replaces`',
};

export type Fields = ReadonlyMap<string, Field>;

/**
 * The known fields of a mapping, laid over those of the mappings `under` it, merges (`<<`) done. As go-yaml 2 does it: entry by
 * entry in the order of the file, so that a merge overrides what stands above it, and a `rate_limit` is laid over the one
 * before it key by key. Says what is unknown, out of place or written twice.
 */
export function readFields(reading: Reading, map: YamlMap, section: Section, under: readonly YamlMap[] = []): Fields {
  const fields = new Map<string, Field>();
  for (const lower of under) gather(reading, lower, section, fields, lower);
  gather(reading, map, section, fields, undefined);
  return fields;
}

function gather(
  reading: Reading,
  map: YamlMap,
  section: Section,
  fields: Map<string, Field>,
  merge: YamlNode | undefined,
) {
  for (const entry of map.entries) {
    if (isMergeKey(entry.key)) {
      for (const source of mergeSources(reading, entry)) gather(reading, source, section, fields, merge ?? entry.key);
    } else if (isUsable(reading, entry.key, section)) {
      assign(reading, entry, fields, merge);
    }
  }
}

/** `<<` unquoted, as go-yaml 2 has it. */
export function isMergeKey(key: YamlNode): boolean {
  return (
    key.kind === 'scalar' && key.text === '<<' && key.plain && (key.tag === undefined || key.tag.endsWith(':merge'))
  );
}

/** What `<<` merges in, in the order of assignment: of a list the last first, because the first is to win. */
export function mergeSources(reading: Reading, { key, value }: YamlEntry): readonly YamlMap[] {
  const sources = value.kind === 'list' ? value.items.toReversed() : [value];
  const maps = sources.filter((source) => source.kind === 'map');
  if (maps.length === sources.length) return maps;
  const wrong = sources.find((source) => source.kind !== 'map') ?? value;
  const message = `error loading config file: map merge requires map or sequence of maps as the value, but found ${describeNode(wrong)}`;
  reading.say(
    key,
    'invalid-merge',
    message,
    'Give `<<` an alias of a mapping (`<<: *name`) or a list of such aliases.',
  );
  return maps;
}

function isUsable(reading: Reading, key: YamlNode, section: Section): boolean {
  if (key.kind !== 'scalar' || scalarType(key) !== 'text') {
    const message = `config error, key is not of type string: ${printNode(key)}`;
    reading.say(key, 'key-not-text', message, `The keys here are ${list(KNOWN_KEYS[section])}.`);
    return false;
  }
  if (isKnownIn(section, key.text)) return true;
  if (isKnownAnywhere(key.text)) {
    const message = `\`${key.text}\` has no effect ${WHERE[section]}`;
    const advice = `It counts only ${placesOf(key.text)}; move it there, or take it out.`;
    reading.say(key, 'misplaced-key', message, advice);
    return false;
  }
  reading.say(key, 'unknown-key', `config error, unknown key '${showText(key.text)}'`, adviceOn(key.text, section));
  return false;
}

/** What a key that is unknown in a section may have been meant to be. */
function adviceOn(key: string, section: Section): string {
  const here = nearestName(key, KNOWN_KEYS[section], KEY_TOLERANCE);
  if (here !== undefined) return `Did you mean \`${here}\`?`;
  const elsewhere = nearestName(key, ALL_KEYS, KEY_TOLERANCE);
  if (elsewhere === undefined) return `The keys here are ${list(KNOWN_KEYS[section])}.`;
  return `Did you mean \`${elsewhere}\`? It belongs ${placesOf(elsewhere)}.`;
}

function placesOf(key: string): string {
  return sectionsOf(key)
    .map((section) => WHERE[section])
    .join(' or ');
}

function assign(
  reading: Reading,
  { key, value }: YamlEntry,
  fields: Map<string, Field>,
  merge: YamlNode | undefined,
): void {
  const name = key.kind === 'scalar' ? key.text : '';
  const before = fields.get(name);
  const merged = merge !== undefined;
  if (before === undefined) {
    fields.set(name, { key, value, under: [], merged });
    return;
  }
  if (merge !== undefined && !before.merged) {
    const message = `\`<<\` overrides the \`${name}\` that stands above it`;
    const advice = 'Put `<<` first in its mapping: what is to override it has to follow it.';
    reading.say(merge, 'merge-overrides-key', message, advice);
  } else if (merge === undefined && !before.merged) {
    const message = `\`${name}\` stands here a second time; the first is in ${reading.nameOf(before.key, reading.source)}`;
    reading.say(key, 'repeated-key', message, 'Keep one of the two: the last one counts.');
  }
  const joined = name === 'rate_limit' && before.value.kind === 'map' && value.kind === 'map';
  if (joined && before.merged !== merged) {
    const message = '`rate_limit` does not replace the merged one: what is not written here is taken from there';
    const advice = 'Write all of the limit here, or keep the limit out of what `<<` brings in.';
    reading.say(merge ?? key, 'merged-rate-limit', message, advice);
  }
  fields.set(name, { key, value, under: joined ? [...before.under, before.value] : [], merged });
}

function list(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}

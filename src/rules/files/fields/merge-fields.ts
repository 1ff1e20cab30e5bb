import { KEY_TOLERANCE, nearestName } from '../../../text/nearest-name';
import { ALL_KEYS, isKnownAnywhere, isKnownIn, KNOWN_KEYS, sectionsOf, type Section } from './known-keys';
import type { ProblemDetails } from '../problems/problem';
import type { ReadContext } from './read-context';
import { scalarType } from '../yaml/yaml-scalar';
import type { YamlEntry, YamlMap, YamlNode } from '../yaml/yaml-tree';
import { describeNode, printNode, showText } from '../yaml/yaml-text';

/** A known key of a mapping with its value. */
export interface Field {
  readonly key: YamlNode;
  /** The effective value: the last one assigned. */
  readonly value: YamlNode;
  /** Earlier values that the value extends, the lowest first. Only `rate_limit` and `metadata` are joined; others are replaced. */
  readonly under: readonly YamlMap[];
  /** Whether it was merged in by `<<`. */
  readonly merged: boolean;
}

const SECTION_PLACES: Readonly<Record<Section, string>> = {
  'top level': 'at the top level of the file',
  descriptor: 'in a descriptor',
  rate_limit: 'in `rate_limit`',
  replaces: 'in an entry of `replaces`',
};

/**
 * The known fields of mappings that are laid over each other, with merges (`<<`) applied. As in go-yaml 2, entries are assigned
 * in the order of the file: a merge overrides fields above it, and a `rate_limit` or `metadata` extends the one before it key by
 * key. Reports keys that are unknown, misplaced or repeated.
 *
 * @param layers the lowest first; all but the last count as merged
 */
export function mergeFields(
  context: ReadContext,
  section: Section,
  layers: readonly YamlMap[],
): ReadonlyMap<string, Field> {
  const merger = new FieldMerger(context, section);
  for (const [index, layer] of layers.entries()) merger.add(layer, index < layers.length - 1 ? layer : undefined);
  return merger.fields;
}

/** The fields whose mappings are joined. */
const JOINED: ReadonlySet<string> = new Set(['rate_limit', 'metadata']);

/** A field whose earlier values are still collected. */
interface GrowingField extends Field {
  readonly under: YamlMap[];
}

class FieldMerger {
  readonly fields = new Map<string, GrowingField>();
  readonly #context: ReadContext;
  readonly #section: Section;

  constructor(context: ReadContext, section: Section) {
    this.#context = context;
    this.#section = section;
  }

  /** @param mergedBy the node that merges the mapping in: a `<<` key, or the mapping itself; undefined for the mapping read */
  add(map: YamlMap, mergedBy: YamlNode | undefined): void {
    for (const entry of map.entries) {
      if (isMergeKey(entry.key)) {
        for (const source of mergeSources(this.#context, entry)) this.add(source, mergedBy ?? entry.key);
      } else if (this.#accepts(entry.key)) {
        this.#assign(entry, mergedBy);
      }
    }
  }

  #accepts(key: YamlNode): boolean {
    const section = this.#section;
    if (key.kind !== 'scalar' || scalarType(key) !== 'text') {
      const message = `config error, key is not of type string: ${printNode(key)}`;
      this.#context.report(key, { code: 'key-not-text', message, advice: listKeys(section) });
      return false;
    }
    if (isKnownIn(section, key.text)) return true;
    if (isKnownAnywhere(key.text)) {
      const message = `\`${key.text}\` has no effect ${SECTION_PLACES[section]}`;
      const advice = `It has an effect only ${placesOf(key.text)}; move it there, or remove it.`;
      this.#context.report(key, { code: 'misplaced-key', message, advice });
      return false;
    }
    const message = `config error, unknown key '${showText(key.text)}'`;
    this.#context.report(key, { code: 'unknown-key', message, advice: suggestKey(key.text, section) });
    return false;
  }

  #assign({ key, value }: YamlEntry, mergedBy: YamlNode | undefined): void {
    const name = key.kind === 'scalar' ? key.text : '';
    const before = this.fields.get(name);
    const merged = mergedBy !== undefined;
    if (before === undefined) {
      this.fields.set(name, { key, value, under: [], merged });
      return;
    }
    const joined = JOINED.has(name) && before.value.kind === 'map' && value.kind === 'map' ? before.value : undefined;
    const details = this.#overlap(name, before, { merged, isJoined: joined !== undefined });
    if (details !== undefined) this.#context.report(mergedBy ?? key, details);
    // The array is shared, because copying it for each of many repeated keys would take quadratic time.
    if (joined !== undefined) before.under.push(joined);
    this.fields.set(name, { key, value, under: joined === undefined ? [] : before.under, merged });
  }

  /** The warning about a field that is assigned again; none when only merges assign it, or when it replaces a merged one. */
  #overlap(
    name: string,
    before: Field,
    { merged, isJoined }: { merged: boolean; isJoined: boolean },
  ): ProblemDetails | undefined {
    if (before.merged) return isJoined && !merged ? extendsMerged(name) : undefined;
    if (merged) return overriddenByMerge(name, isJoined);
    const details = repeatedKey(name, this.#context.describe(before.key));
    return isJoined ? { ...details, advice: 'Join the two: the second one extends the first.' } : details;
  }
}

/** @param first where the key was before, in a few words */
export function repeatedKey(name: string, first: string): ProblemDetails {
  const message = `\`${name}\` is repeated here; the first one is at ${first}`;
  return { code: 'repeated-key', message, advice: 'Keep one of the two; the last one is used.' };
}

function overriddenByMerge(name: string, isJoined: boolean): ProblemDetails {
  const message = isJoined
    ? `\`<<\` overrides keys of the \`${name}\` above it`
    : `\`<<\` overrides the \`${name}\` above it`;
  const advice = 'Put `<<` first in its mapping: only keys after it override the merged ones.';
  return { code: 'merge-overrides-key', message, advice };
}

function extendsMerged(name: string): ProblemDetails {
  const message = `\`${name}\` does not replace the merged one: keys that are not written here are taken from there`;
  const advice = `Write all of its keys here, or remove \`${name}\` from the mapping that \`<<\` merges.`;
  return { code: 'merged-rate-limit', message, advice };
}

/** Whether a key is an unquoted `<<`, as in go-yaml 2. */
export function isMergeKey(key: YamlNode): boolean {
  return (
    key.kind === 'scalar' && key.text === '<<' && key.plain && (key.tag === undefined || key.tag.endsWith(':merge'))
  );
}

/** The mappings that `<<` merges, in the order of assignment: a list is reversed, because its first item has precedence. */
export function mergeSources(context: ReadContext, { key, value }: YamlEntry): readonly YamlMap[] {
  const sources = value.kind === 'list' ? value.items.toReversed() : [value];
  const maps = sources.filter((source) => source.kind === 'map');
  if (maps.length === sources.length) return maps;
  const wrong = sources.find((source) => source.kind !== 'map') ?? value;
  context.report(key, {
    code: 'invalid-merge',
    message: `error loading config file: map merge requires map or sequence of maps as the value, but found ${describeNode(wrong)}`,
    advice: 'Give `<<` an alias of a mapping (`<<: *name`) or a list of such aliases.',
  });
  return maps;
}

/** The advice for a key that is unknown in a section: the known key that was probably meant. */
function suggestKey(key: string, section: Section): string {
  const here = nearestName(key, KNOWN_KEYS[section], KEY_TOLERANCE);
  if (here !== undefined) return `Did you mean \`${here}\`?`;
  const elsewhere = nearestName(key, ALL_KEYS, KEY_TOLERANCE);
  if (elsewhere === undefined) return listKeys(section);
  return `Did you mean \`${elsewhere}\`? It belongs ${placesOf(elsewhere)}.`;
}

function placesOf(key: string): string {
  return sectionsOf(key)
    .map((section) => SECTION_PLACES[section])
    .join(' or ');
}

function listKeys(section: Section): string {
  return `The keys allowed here are ${KNOWN_KEYS[section].map((name) => `\`${name}\``).join(', ')}.`;
}

import { MAX_UINT32 } from '../../text/plain-number';
import type { RuleConfig } from '../rule-config';
import type { ProblemDetails } from './problems/problem';
import { type ProblemReport, type SourceDocument, type SourceRange, placeFrom } from './problems/source-text';
import {
  type Choice,
  type FieldKind,
  type FieldName,
  type FieldType,
  type Section,
  fieldType,
  listKeys,
  misplacement,
  suggestKey,
} from './rule-fields';
import {
  type YamlEntry,
  type YamlMap,
  type YamlNode,
  type YamlScalar,
  booleanOf,
  describeNode,
  isNull,
  isOctalByZero,
  numberOf,
  printNode,
  scalarType,
  showText,
} from './yaml/yaml-tree';

/** Where a rule is, and where in it the fields are that the checks report about. */
export interface RuleLocation {
  /** The context of the source of the rule. */
  readonly context: ReadContext;
  /** The `key` of the rule, or the start of the rule when it has none. */
  readonly key: SourceRange;
  /** What it matches; its `key` when that is any value. */
  readonly value: SourceRange;
  /** Where the first `requests_per_unit` is that is 0. */
  readonly zero: SourceRange | undefined;
  /** Where each name in `replaces` is, in order. */
  readonly replaces: readonly SourceRange[];
  readonly detailedMetric: SourceRange | undefined;
  readonly valueToMetric: SourceRange | undefined;
}

/**
 * Limits and options of one source that are compared: where each rule has other ones, nothing is saved, and their texts
 * take more than they.
 */
const MAX_SHARED = 10_000;

/** What the readers share while they read one source. */
export class ReadContext {
  readonly #shared = new Map<string, object>();

  /** @param locations where each rule of every source is, for the checks that compare rules */
  constructor(
    readonly source: SourceDocument,
    readonly locations: Map<RuleConfig, RuleLocation>,
    readonly problems: ProblemReport,
  ) {}

  report(range: SourceRange, details: ProblemDetails): void {
    this.problems.add(this.source, range, details);
  }

  /** The value of this source that is equal: 100,000 rules rarely have more than a few limits. */
  shared<T extends object>(value: T): T {
    const text = JSON.stringify(value);
    const known = this.#shared.get(text) as T | undefined;
    if (known === undefined && this.#shared.size < MAX_SHARED) this.#shared.set(text, value);
    return known ?? value;
  }
}

/** A known field of a mapping. */
export interface Field {
  readonly key: YamlNode;
  /** The effective value: the last one assigned. */
  readonly value: YamlNode;
  /** Earlier values that the value extends, the lowest first. */
  readonly under: YamlMap[];
  /** Whether it was merged in by `<<`. */
  readonly merged: boolean;
}

/** How to write a whole number. */
export function countAdvice(least: number, most = MAX_UINT32): string {
  return `Write a whole number from ${least} to ${most}, without quotes.`;
}

/** What a value of each kind must be, for a message, and how to write it. */
const EXPECTED: Readonly<Record<Exclude<FieldKind, 'data'>, { readonly expected: string; readonly advice: string }>> = {
  text: { expected: 'text', advice: 'Write a single text value.' },
  choice: { expected: 'text', advice: 'Write a single text value.' },
  flag: { expected: 'true or false', advice: 'Write `true` or `false`, without quotes.' },
  count: { expected: 'a whole number', advice: countAdvice(0) },
  list: { expected: 'a list', advice: 'Start each item with `- `.' },
  texts: { expected: 'a list', advice: 'Write the values in brackets, with commas between them.' },
  section: { expected: 'a mapping', advice: 'Write `key: value` lines below it.' },
};

/**
 * The fields of one mapping, with those that it extends below it and with merges (`<<`) applied. As in go-yaml 2,
 * entries are assigned in the order of the file: a merge overrides fields above it, and a `rate_limit` or `metadata`
 * extends the one before it key by key. Reports keys that are unknown, misplaced or repeated, and values that are
 * missing or of the wrong type; these are read as absent.
 */
export class Fields<S extends Section> {
  readonly context: ReadContext;
  /** The start of the mapping, to mark in a message about an absent field. */
  readonly start: SourceRange;
  readonly #section: S;
  readonly #fields = new Map<string, Field>();
  #wrong: Set<string> | undefined;

  /** @param layers the mapping, preceded by those that it extends, the lowest first: they count as merged */
  constructor(context: ReadContext, section: S, layers: readonly YamlMap[]) {
    this.context = context;
    this.#section = section;
    const offset = layers.at(-1)?.offset ?? 0;
    this.start = { offset, end: offset + 1 };
    for (const [index, layer] of layers.entries()) this.#merge(layer, index < layers.length - 1 ? layer : undefined);
    for (const [name, { value }] of this.#fields) {
      const type = fieldType(section, name);
      if (type !== undefined) this.#check(name, type, value);
    }
  }

  get(name: FieldName<S>): Field | undefined {
    return this.#fields.get(name);
  }

  /** The key of a field, to mark in a message; the start of the mapping when the field is absent. */
  keyOf(name: FieldName<S>): SourceRange {
    return this.#fields.get(name)?.key ?? this.start;
  }

  /** Whether the field has a value of the wrong type, which is reported: what depends on it is not known then. */
  isWrong(name: FieldName<S>): boolean {
    return this.#wrong?.has(name) === true;
  }

  /** The value of a field that is neither absent nor null, empty or wrong. */
  given(name: FieldName<S>): YamlNode | undefined {
    return this.#given(name);
  }

  /** Reports the value of a field, which is wrong because of other fields. */
  reject(name: FieldName<S>, details: ProblemDetails): void {
    this.context.report(this.#fields.get(name)?.value ?? this.start, details);
  }

  /**
   * A scalar's source text, of any type (`value: 010` is `010`, `value: yes` is `yes`); empty when absent, null or
   * wrong.
   */
  text(name: FieldName<S, 'text'>): string {
    const value = this.#fields.get(name)?.value;
    return value?.kind === 'scalar' && !isNull(value) ? value.text : '';
  }

  /** Undefined when absent, null, empty or wrong. */
  choice<N extends FieldName<S, 'choice'>>(name: N): Choice<S, N> | undefined {
    const value = this.#given(name);
    return value?.kind === 'scalar' ? (value.text as Choice<S, N>) : undefined;
  }

  /** False when absent, null or wrong. */
  flag(name: FieldName<S, 'flag'>): boolean {
    const value = this.#given(name);
    return value?.kind === 'scalar' && booleanOf(value);
  }

  /** Undefined when absent, null or wrong. */
  count(name: FieldName<S, 'count'>): number | undefined {
    const value = this.#given(name);
    // `-0` is 0.
    return value?.kind === 'scalar' ? numberOf(value) || 0 : undefined;
  }

  /**
   * The mappings of a list or section; of a section, the last one extends those before it. Mappings in a value or an
   * item of the wrong type are read too, so that their problems are reported in the same run.
   */
  maps(name: FieldName<S, 'list' | 'section'>): readonly YamlMap[] {
    const field = this.#fields.get(name);
    if (field === undefined) return [];
    const maps = mapsIn(field.value);
    return maps.length === 0 ? [] : [...field.under, ...maps];
  }

  #given(name: string): YamlNode | undefined {
    const value = this.#fields.get(name)?.value;
    return value === undefined || isEmpty(value) || this.#wrong?.has(name) === true ? undefined : value;
  }

  /**
   * @param mergedBy the node that merges the mapping in: a `<<` key, or the mapping itself; undefined for the mapping
   * read
   */
  #merge(map: YamlMap, mergedBy: YamlNode | undefined): void {
    for (const entry of map.entries) {
      const { key } = entry;
      if (isMergeKey(key)) {
        for (const source of mergeSources(this.context, entry)) this.#merge(source, mergedBy ?? key);
        continue;
      }
      const type = key.kind === 'scalar' ? fieldType(this.#section, key.text) : undefined;
      if (type === undefined) this.#reportKey(key);
      else this.#assign(entry, type, mergedBy);
    }
  }

  #reportKey(key: YamlNode): void {
    const section = this.#section;
    if (key.kind !== 'scalar' || scalarType(key) !== 'text') {
      const message = `config error, key is not of type string: ${printNode(key)}`;
      this.context.report(key, { code: 'key-not-text', message, advice: listKeys(section) });
      return;
    }
    const misplaced = misplacement(section, key.text);
    if (misplaced !== undefined) {
      this.context.report(key, { code: 'misplaced-key', ...misplaced });
      return;
    }
    const message = `config error, unknown key '${showText(key.text)}'`;
    this.context.report(key, { code: 'unknown-key', message, advice: suggestKey(section, key.text) });
  }

  #assign({ key, value }: YamlEntry, type: FieldType, mergedBy: YamlNode | undefined): void {
    const name = key.kind === 'scalar' ? key.text : '';
    const before = this.#fields.get(name);
    const merged = mergedBy !== undefined;
    if (before === undefined) {
      this.#fields.set(name, { key, value, under: [], merged });
      return;
    }
    const joined = type.isJoined && before.value.kind === 'map' && value.kind === 'map' ? before.value : undefined;
    const details = this.#overlap(name, before, { merged, isJoined: joined !== undefined });
    if (details !== undefined) this.context.report(mergedBy ?? key, details);
    // The array is shared, because copying it for each of many repeated keys would take quadratic time.
    if (joined !== undefined) before.under.push(joined);
    this.#fields.set(name, { key, value, under: joined === undefined ? [] : before.under, merged });
  }

  /**
   * The warning about a field that is assigned again; none when only merges assign it, or when it replaces a merged
   * one.
   */
  #overlap(
    name: string,
    before: Field,
    { merged, isJoined }: { merged: boolean; isJoined: boolean },
  ): ProblemDetails | undefined {
    if (before.merged && (merged || !isJoined)) return undefined;
    if (before.merged) {
      const text = `\`${name}\` does not replace the merged one: keys that are not written here are taken from there`;
      const advice = `Write all of its keys here, or remove \`${name}\` from the mapping that \`<<\` merges.`;
      return { code: 'merged-rate-limit', message: text, advice };
    }
    if (merged) {
      const message = `\`<<\` overrides ${isJoined ? 'keys of ' : ''}the \`${name}\` above it`;
      return { code: 'merge-overrides-key', message };
    }
    const details = repeatedKey(this.context, name, before.key);
    return isJoined ? { ...details, advice: 'Join the two: the second one extends the first.' } : details;
  }

  #check(name: string, type: FieldType, value: YamlNode): void {
    const isText = type.kind === 'text' || type.kind === 'choice';
    if (isText ? isEmpty(value) : isNull(value)) {
      if (type.empty === undefined || this.#isWrittenOut(type, value)) return;
      const message = `\`${name}\` is empty: ${type.empty}`;
      this.context.report(this.#fields.get(name)?.key ?? value, { code: 'empty-field', message });
    } else if (type.kind === 'data') {
      return;
    } else if (!isOfKind(type.kind, value)) {
      const { expected, advice } = EXPECTED[type.kind];
      const message = `error loading config file: \`${name}\` must be ${expected}, but is ${describeNode(value)}`;
      const listAdvice = value.kind === 'list' ? type.listAdvice : undefined;
      this.#reject(name, value, { code: 'wrong-type', message, advice: listAdvice ?? type.advice ?? advice });
    } else if (type.kind === 'choice' && value.kind === 'scalar') this.#checkChoice(name, type, value);
    else if (type.kind === 'count' && value.kind === 'scalar') this.#checkCount(name, type, value);
    else if (type.kind === 'list' && value.kind === 'list') this.#checkItems(name, value.items);
  }

  /** Whether an empty value is written (`null`, `""`), as by tools that write every field, and not just left out. */
  #isWrittenOut({ isLimit }: FieldType, value: YamlNode): boolean {
    if (value.kind !== 'scalar' || (value.plain && value.text === '')) return false;
    if (isLimit !== true) return true;
    return ['descriptors', 'rate_limits'].some((name) => mapsIn(this.#fields.get(name)?.value ?? value).length > 0);
  }

  #checkChoice(name: string, { choices }: FieldType, value: YamlScalar): void {
    if (choices === undefined || choices.texts.includes(value.text)) return;
    const message = `invalid ${choices.what} '${showText(value.text)}'`;
    this.#reject(name, value, { code: choices.code, message });
  }

  #checkCount(name: string, { code = 'wrong-type', least = 0, most = MAX_UINT32 }: FieldType, value: YamlScalar): void {
    const reason = whyNoCount(value, least, most);
    if (reason !== undefined) {
      const message =
        `error loading config file: ${name} must be a whole number from ${least} to ${most}, but ` + reason;
      this.#reject(name, value, { code, message, advice: countAdvice(least, most) });
    } else if (isOctalByZero(value)) {
      const number = numberOf(value);
      this.context.report(value, {
        code: 'octal-number',
        message: `\`${value.text}\` is the number ${number}: a leading 0 makes it octal`,
        advice: `Write ${number}, or the intended number without a leading 0.`,
      });
    }
  }

  #checkItems(name: string, items: readonly YamlNode[]): void {
    for (const item of items) {
      if (item.kind === 'map') continue;
      this.context.report(item, {
        code: 'list-item-not-a-mapping',
        message: `config error, yaml file contains list of type other than map: ${printNode(item)}`,
        advice: `Each item of \`${name}\` must be a mapping: \`- key: value\`.`,
      });
    }
  }

  #reject(name: string, value: YamlNode, details: ProblemDetails): void {
    this.context.report(value, details);
    (this.#wrong ??= new Set()).add(name);
  }
}

function isOfKind(kind: keyof typeof EXPECTED, value: YamlNode): boolean {
  if (kind === 'flag') return value.kind === 'scalar' && scalarType(value) === 'boolean';
  if (kind === 'section') return value.kind === 'map';
  return value.kind === (kind === 'list' || kind === 'texts' ? 'list' : 'scalar');
}

/** Whether a value is null or an empty text. */
function isEmpty(value: YamlNode): boolean {
  return value.kind === 'scalar' && (value.text === '' || isNull(value));
}

/** Why a scalar is not a whole number from `least` to `most`; undefined when it is one. */
function whyNoCount(value: YamlScalar, least: number, most: number): string | undefined {
  const shown = showText(value.text);
  switch (scalarType(value)) {
    case 'integer': {
      const number = numberOf(value);
      if (number < 0) return `${shown} is negative`;
      if (number < least) return `${shown} is smaller`;
      return number > most ? `${shown} is larger` : undefined;
    }
    case 'float':
      return /^[-+]?0\d+$/.test(value.text)
        ? `${shown} has a leading 0 and is not an octal number`
        : `${shown} is a floating-point number`;
    case 'boolean':
      return `${shown} is not a number`;
    default:
      return /^[-+]?[0-9][0-9_.]*$/.test(value.text)
        ? `'${shown}' is text, because it is quoted`
        : `'${shown}' is text`;
  }
}

/** @param first where the key was before */
export function repeatedKey({ source }: ReadContext, name: string, first: SourceRange): ProblemDetails {
  const message = `\`${name}\` is repeated here; the first one is at ${placeFrom(source, source, first)}`;
  return { code: 'repeated-key', message };
}

/**
 * Warns about a text that requests are compared with, and that begins or ends with white space. @param name what it is
 */
export function checkBlanks(context: ReadContext, node: YamlNode | undefined, name: string): void {
  if (node?.kind !== 'scalar' || isNull(node) || node.text.trim() === node.text) return;
  const message = `the ${name} '${showText(node.text)}' begins or ends with white space, which requests must send, too`;
  context.report(node, { code: 'surrounding-blanks', message });
}

/** Whether a key is an unquoted `<<`, as in go-yaml 2. */
export function isMergeKey(key: YamlNode): boolean {
  return (
    key.kind === 'scalar' && key.text === '<<' && key.plain && (key.tag === undefined || key.tag.endsWith(':merge'))
  );
}

/**
 * The mappings that `<<` merges, in the order of assignment: a list is reversed, because its first item has precedence.
 */
export function mergeSources(context: ReadContext, { key, value }: YamlEntry): readonly YamlMap[] {
  const sources = value.kind === 'list' ? value.items.toReversed() : [value];
  const maps = sources.filter((source) => source.kind === 'map');
  if (maps.length === sources.length) return maps;
  const wrong = sources.find((source) => source.kind !== 'map') ?? value;
  context.report(key, {
    code: 'invalid-merge',
    message:
      'error loading config file: map merge requires map or sequence of maps as the value, but found ' +
      describeNode(wrong),
  });
  return maps;
}

/** The node itself if it is a mapping, or the mappings in it if it is a list. */
export function mapsIn(node: YamlNode): readonly YamlMap[] {
  if (node.kind === 'list') return node.items.flatMap(mapsIn);
  return node.kind === 'map' ? [node] : [];
}

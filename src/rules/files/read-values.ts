import { Network } from '../networks';
import { type ConfiguredValue, ValueRegex } from '../values';
import type { ProblemDetails } from './problems/problem';
import type { SourceRange } from './problems/source-text';
import { type Fields, type ReadContext, checkBlanks } from './read-fields';
import { type YamlList, describeNode, isNull, showText } from './yaml/yaml-tree';

/** What a rule matches. */
export interface ReadValues {
  readonly config: ConfiguredValue;
  /** Undefined for any value. */
  readonly range: SourceRange | undefined;
  /** Texts of which no two rules of a level and key have the same. None when what the rule matches is invalid. */
  readonly identities: readonly Identity[];
}

interface Identity {
  /** A text of one kind is not one of another. */
  readonly kind: '' | 'cidr ' | 'regex ';
  readonly text: string;
  /** Undefined: that of the key. */
  readonly range: SourceRange | undefined;
}

/** What a rule has that matches any value. */
const ANY_VALUE: ReadValues = {
  config: { value: '' },
  range: undefined,
  identities: [{ kind: '', text: '', range: undefined }],
};
const INVALID: ReadValues = { ...ANY_VALUE, identities: [] };

/** Characters of a regular expression, and instructions of its program. */
const MAX_REGEX = 1_000;

const VALUE_FIELDS = ['value', 'value_in', 'value_cidr', 'value_regex'] as const;

/** Reads `value`, or the field that a rule has in its place. */
export function readValues(fields: Fields<'descriptor'>): ReadValues {
  const present = VALUE_FIELDS.filter((name) => fields.given(name) !== undefined || fields.isWrong(name));
  const [name, second] = present;
  if (name === undefined) return ANY_VALUE;
  if (second !== undefined) {
    const message = `\`${second}\` cannot be combined with \`${name}\``;
    fields.context.report(fields.keyOf(second), { code: 'several-values', message });
    return INVALID;
  }
  const node = fields.given(name);
  if (node === undefined) return INVALID;
  if (node.kind === 'list') return readList(fields.context, node);
  const text = fields.text(name as Exclude<typeof name, 'value_in'>);
  if (name === 'value_cidr') return readNetwork(fields.context, text, node);
  if (name === 'value_regex') return readRegex(fields.context, text, node);
  checkBlanks(fields.context, node, 'value');
  return { config: { value: text }, range: node, identities: [{ kind: '', text, range: undefined }] };
}

function readList(context: ReadContext, list: YamlList): ReadValues {
  const identities: Identity[] = [];
  for (const item of list.items) {
    if (item.kind !== 'scalar' || isNull(item) || item.text === '') {
      const message = `\`value_in\` has an item that is ${item.kind === 'scalar' ? 'empty' : describeNode(item)}`;
      context.report(item, { code: 'invalid-value-in', message });
      return INVALID;
    }
    const { text } = item;
    if (text.includes('*')) {
      const message = `the \`*\` of '${showText(text)}' is an ordinary character in a list`;
      context.report(item, { code: 'wildcard-in-list', message });
    }
    checkBlanks(context, item, 'value');
    identities.push({ kind: '', text, range: item });
  }
  if (identities.length > 0) {
    return { config: { value: '', valueIn: identities.map(({ text }) => text) }, range: list, identities };
  }
  context.report(list, { code: 'invalid-value-in', message: '`value_in` has no values' });
  return INVALID;
}

function readNetwork(context: ReadContext, written: string, range: SourceRange): ReadValues {
  const network = Network.parse(written);
  if (network === undefined || network.hasHostBits) {
    const shown = showText(written);
    context.report(range, {
      code: 'invalid-value-cidr',
      message:
        network === undefined
          ? `'${shown}' is not a network in CIDR notation`
          : `'${shown}' has bits set after its prefix of ${network.bits} bits`,
      advice:
        network === undefined
          ? 'Write an address and the length of its prefix, such as 10.0.0.0/8, 192.0.2.7/32 or 2001:db8::/32.'
          : `Write ${network.text}.`,
    });
    return INVALID;
  }
  const { text } = network;
  return { config: { value: '', valueCidr: text }, range, identities: [{ kind: 'cidr ', text, range }] };
}

function readRegex(context: ReadContext, source: string, range: SourceRange): ReadValues {
  const details = problemOf(source);
  if (details === undefined) {
    const config = { value: '', valueRegex: source };
    return { config, range, identities: [{ kind: 'regex ', text: source, range }] };
  }
  context.report(range, details);
  return INVALID;
}

function problemOf(source: string): ProblemDetails | undefined {
  const tooLarge = 'regex-too-large';
  if (source.length > MAX_REGEX) {
    return { code: tooLarge, message: `the regular expression has more than ${MAX_REGEX} characters` };
  }
  try {
    const { size } = new ValueRegex(source);
    if (size <= MAX_REGEX) return undefined;
    return {
      code: tooLarge,
      message: `the regular expression compiles to ${size} instructions, more than ${MAX_REGEX}`,
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { code: 'invalid-value-regex', message: `the regular expression is not valid: ${showText(reason)}` };
  }
}

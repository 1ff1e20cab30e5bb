import { excerpt } from '../../../text/excerpt';
import { visible } from '../../../text/visible';
import type { SourceRange } from '../problems/source-text';

/**
 * A YAML document, reduced to what rules need: text and position. An alias is replaced by the node that it refers to,
 * so one node may have several parents, but never contains itself.
 */
export type YamlNode = YamlScalar | YamlMap | YamlList;

export interface YamlScalar extends SourceRange {
  readonly kind: 'scalar';
  /** The text as written: `010` stays `010`. For a quoted or block scalar, its content. */
  readonly text: string;
  /** Neither quoted nor a block scalar: only then is `true` a boolean. */
  readonly plain: boolean;
  /** The explicit tag in its long form, such as `tag:yaml.org,2002:str`. */
  readonly tag: string | undefined;
}

export interface YamlMap extends SourceRange {
  readonly kind: 'map';
  readonly entries: readonly YamlEntry[];
}

export interface YamlEntry {
  readonly key: YamlNode;
  readonly value: YamlNode;
}

export interface YamlList extends SourceRange {
  readonly kind: 'list';
  readonly items: readonly YamlNode[];
}

const TAG = 'tag:yaml.org,2002:';

const NULL = /^(?:|~|null|Null|NULL)$/;
const TRUE = /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const FALSE = /^(?:n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/;
/** Without underscores, which are removed first: `1_000` is 1000. A leading `0` or `0o` makes a number octal. */
const INTEGER = /^[-+]?(?:0b[01]+|0o[0-7]+|0x[0-9a-f]+|0[0-7]*|[1-9][0-9]*)$/i;
const OCTAL_BY_ZERO = /^[-+]?0[0-7_]*[1-7]/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const NOT_FINITE = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

type ScalarType = 'null' | 'boolean' | 'integer' | 'float' | 'text';

/**
 * The type of a scalar in YAML 1.1 as go-yaml 2, the parser of the Go service, implements it: `yes` is a boolean, `010`
 * is octal and `1:30` is text.
 */
export function scalarType(scalar: YamlScalar): ScalarType {
  if (!isResolved(scalar)) return 'text';
  const { text } = scalar;
  if (NULL.test(text)) return 'null';
  if (TRUE.test(text) || FALSE.test(text)) return 'boolean';
  // A shortcut for most texts: a number starts with a digit, a sign or a point.
  const first = text.charCodeAt(0);
  if (first > 0x39 || first < 0x2b) return 'text';
  const digits = text.replaceAll('_', '');
  if (INTEGER.test(digits)) return 'integer';
  return FLOAT.test(digits) || NOT_FINITE.test(digits) ? 'float' : 'text';
}

/** Whether a node has no value: omitted, `~` or `null`. */
export function isNull(node: YamlNode): boolean {
  return node.kind === 'scalar' && isResolved(node) && NULL.test(node.text);
}

/** The value of a scalar of type boolean. */
export function booleanOf({ text }: YamlScalar): boolean {
  return TRUE.test(text);
}

/** The value of a scalar of type integer or float. Integers above 2^53 are rounded. */
export function numberOf(scalar: YamlScalar): number {
  const text = scalar.text.replaceAll('_', '').toLowerCase();
  const negative = text.startsWith('-');
  const digits = /^[-+]/.test(text) ? text.slice(1) : text;
  const size = INTEGER.test(digits) ? integerOf(digits) : floatOf(digits);
  return negative ? -size : size;
}

/** Whether an integer is octal because of a leading 0 alone, which is often unintended: `010` is 8. */
export function isOctalByZero({ text }: YamlScalar): boolean {
  return OCTAL_BY_ZERO.test(text);
}

/** Whether the type depends on the text: a plain scalar, or one with a tag other than text. */
function isResolved({ plain, tag }: YamlScalar): boolean {
  if (tag === undefined) return plain;
  return tag.startsWith(TAG) && tag !== `${TAG}str` && tag !== `${TAG}binary`;
}

function integerOf(digits: string): number {
  if (/^0[0-7]+$/.test(digits)) return Number(`0o${digits.slice(1)}`);
  return Number(digits);
}

function floatOf(digits: string): number {
  if (digits === '.inf') return Infinity;
  if (digits === '.nan') return NaN;
  return Number(digits);
}

const MIN_INTEGER = -(2n ** 63n);
const MAX_INTEGER = 2n ** 64n - 1n;
/** Longer integers exceed 64 bits in every base, unless they have many leading zeros. In characters. */
const MAX_INTEGER_LENGTH = 70;

/**
 * The value of a scalar in the form in which the Go service prints it: `yes` is `true`, `0x10` is `16` and `1.50` is
 * `1.5`.
 */
export function printScalar(scalar: YamlScalar): string {
  switch (scalarType(scalar)) {
    case 'null':
      return '<nil>';
    case 'boolean':
      return String(booleanOf(scalar));
    case 'integer':
      return printInteger(scalar);
    case 'float':
      return printFloat(numberOf(scalar));
    default:
      return scalar.text;
  }
}

/** Exact, also above 2^53: an identifier is often a long number. Beyond 64 bits, Go has a floating-point number. */
function printInteger(scalar: YamlScalar): string {
  if (scalar.text.length > MAX_INTEGER_LENGTH) return printFloat(numberOf(scalar));
  const [, sign, digits = ''] = /^([-+]?)(.*)$/.exec(scalar.text.replaceAll('_', '').toLowerCase()) ?? [];
  const size = BigInt(/^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits);
  const value = sign === '-' ? -size : size;
  return value < MIN_INTEGER || value > MAX_INTEGER ? printFloat(Number(value)) : String(value);
}

/**
 * As Go's `%v`: with the fewest digits that identify the number, and an exponent of at least two digits for 1e6 and
 * below 1e-4.
 */
function printFloat(number: number): string {
  if (Number.isNaN(number)) return 'NaN';
  if (!Number.isFinite(number)) return number > 0 ? '+Inf' : '-Inf';
  const [digits = '', exponent = ''] = number.toExponential().split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 6) return Object.is(number, -0) ? '-0' : String(number);
  return `${digits}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
}

/** In characters. */
const MAX_SHOWN_LENGTH = 200;
/** How many items of a list or mapping a message shows, and how many levels of them. */
const MAX_SHOWN_ITEMS = 5;
const MAX_SHOWN_DEPTH = 2;

/** The type and text of a node, for a message: `the text '10'`, `a list`, `null`. */
export function describeNode(node: YamlNode): string {
  if (node.kind === 'map') return 'a mapping';
  if (node.kind === 'list') return 'a list';
  switch (scalarType(node)) {
    case 'null':
      return 'null';
    case 'boolean':
      return `the boolean ${showText(node.text)}`;
    case 'integer':
    case 'float':
      return `the number ${showText(node.text)}`;
    default:
      return `the text '${showText(node.text)}'`;
  }
}

/** A node in the form in which the Go service prints an unexpected value. */
export function printNode(node: YamlNode, depth = 0): string {
  if (depth > MAX_SHOWN_DEPTH) return '…';
  if (node.kind === 'map') {
    const entries = node.entries.slice(0, MAX_SHOWN_ITEMS).map(({ key, value }) => {
      return `${printNode(key, depth + 1)}:${printNode(value, depth + 1)}`;
    });
    return `map[${entries.join(' ')}]`;
  }
  if (node.kind === 'list') {
    const items = node.items.slice(0, MAX_SHOWN_ITEMS);
    return `[${items.map((item) => printNode(item, depth + 1)).join(' ')}]`;
  }
  return showText(printScalar(node));
}

/** A text for a message: on one line and of bounded length. */
export function showText(text: string): string {
  return excerpt(oneLine(text), MAX_SHOWN_LENGTH);
}

/** A private key pasted into a rule file by mistake: it must not get into messages, which are logged. */
const PRIVATE_KEY = /(?<=-----BEGIN [A-Z ]*PRIVATE KEY-----)[^]+/;

/** A text for a message, in full length: on one line, without control characters and private keys. */
export function oneLine(text: string): string {
  return visible(text.replace(PRIVATE_KEY, '…').replaceAll(/\s+/g, ' '));
}

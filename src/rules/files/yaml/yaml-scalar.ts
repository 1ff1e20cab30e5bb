import type { YamlScalar } from './yaml-tree';

const TAG = 'tag:yaml.org,2002:';

const NULL = /^(?:|~|null|Null|NULL)$/;
const TRUE = /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const FALSE = /^(?:n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/;
/** Without underscores, which are removed first: `1_000` is 1000. A leading `0` or `0o` makes a number octal. */
const INTEGER = /^[-+]?(?:0b[01]+|0o[0-7]+|0x[0-9a-f]+|0[0-7]*|[1-9][0-9]*)$/i;
const OCTAL_BY_ZERO = /^[-+]?0[0-7_]*[1-7]/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const NOT_FINITE = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

export type ScalarType = 'null' | 'boolean' | 'integer' | 'float' | 'text';

/**
 * The type of a scalar in YAML 1.1 as go-yaml 2, the parser of the Go service, implements it: `yes` is a boolean, `010` is octal
 * and `1:30` is text.
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

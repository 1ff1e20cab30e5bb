import type { YamlScalar } from './yaml-tree';

const TAG = 'tag:yaml.org,2002:';

const NULL = /^(?:|~|null|Null|NULL)$/;
const TRUE = /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const FALSE = /^(?:n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/;
/** Underscores are taken out before: `1_000` is 1000. A leading 0 is octal, and so is `0o`. */
const INTEGER = /^[-+]?(?:0b[01]+|0o[0-7]+|0x[0-9a-f]+|0[0-7]*|[1-9][0-9]*)$/i;
const OCTAL_BY_ZERO = /^[-+]?0[0-7_]*[1-7]/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const NOT_FINITE = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

export type ScalarType = 'null' | 'boolean' | 'integer' | 'float' | 'text';

/**
 * What a scalar is, read as the Go service reads it: YAML 1.1 as go-yaml 2 has it, where `yes` is a boolean, `010` is octal and
 * `1:30` is text.
 */
export function scalarType(scalar: YamlScalar): ScalarType {
  if (!isResolved(scalar)) return 'text';
  const { text } = scalar;
  if (NULL.test(text)) return 'null';
  if (TRUE.test(text) || FALSE.test(text)) return 'boolean';
  // Most texts end here: what is neither digit, sign nor point begins no number.
  const first = text.charCodeAt(0);
  if (first > 0x39 || first < 0x2b) return 'text';
  const digits = text.replaceAll('_', '');
  if (INTEGER.test(digits)) return 'integer';
  return FLOAT.test(digits) || NOT_FINITE.test(digits) ? 'float' : 'text';
}

/** `true` and its other spellings; only for a scalar of that type. */
export function booleanOf({ text }: YamlScalar): boolean {
  return TRUE.test(text);
}

/** The number of a scalar of type integer or float. One above 2^53 is rounded. */
export function numberOf(scalar: YamlScalar): number {
  const text = scalar.text.replaceAll('_', '').toLowerCase();
  const negative = text.startsWith('-');
  const digits = /^[-+]/.test(text) ? text.slice(1) : text;
  const size = INTEGER.test(digits) ? integerOf(digits) : floatOf(digits);
  return negative ? -size : size;
}

/** Whether an integer is octal by its leading 0 alone, which few people expect: `010` is 8. */
export function isOctalByZero({ text }: YamlScalar): boolean {
  return OCTAL_BY_ZERO.test(text);
}

/** Whether the text decides on the type: plain, or tagged as something other than text. */
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

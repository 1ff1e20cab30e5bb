import type { ValueType } from '../../src/settings/values/value-type';

/** The value that a type parses from a text, or the word `rejected`. */
export function parseValue<Value>(type: ValueType<Value>, text: string): Value | 'rejected' {
  const result = type.parse(text);
  return 'value' in result ? result.value : 'rejected';
}

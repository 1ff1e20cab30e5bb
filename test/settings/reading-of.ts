import type { ValueType } from '../../src/settings/values/value-type';

/** What a type makes of a text: the value, or the word `refused`. */
export function readingOf<Value>(type: ValueType<Value>, text: string): Value | 'refused' {
  const reading = type.read(text);
  return 'value' in reading ? reading.value : 'refused';
}

import { accepted, refused, type ValueType } from './value-type';

const WORDS = new Map([
  ['1', true],
  ['t', true],
  ['true', true],
  ['0', false],
  ['f', false],
  ['false', false],
]);

/** `1`, `t`, `true` and `0`, `f`, `false`, in any case. */
export const boolean: ValueType<boolean> = {
  allowed: 'true or false',
  read(text) {
    const value = WORDS.get(text.toLowerCase());
    return value === undefined ? refused() : accepted(value);
  },
  write: String,
};

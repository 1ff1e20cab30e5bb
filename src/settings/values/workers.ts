import { accepted, type ValueType } from './value-type';
import { wholeNumber } from './whole-number';

const number = wholeNumber({ min: 1 });

/** A number of processes, or `auto` in any case. */
export const workers: ValueType<number | 'auto'> = {
  allowed: `${number.allowed}, or auto`,
  read: (text) => (text.toLowerCase() === 'auto' ? accepted('auto') : number.read(text)),
  write: String,
};

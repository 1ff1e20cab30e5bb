import { accepted, refused, type ValueType } from './value-type';

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const HEXADECIMAL =
  /^(?<sign>[+-]?)0[xX](?=\.?[\da-fA-F])(?<whole>[\da-fA-F]*)\.?(?<fraction>[\da-fA-F]*)[pP](?<exponent>[+-]?\d+)$/;

/** A number as Go reads one: decimal or hexadecimal, with or without exponent, `_` between digits. Undefined for all else. */
function parseNumber(text: string): number | undefined {
  const decimal = text.replaceAll(/(?<=\d)_(?=\d)/g, '');
  if (DECIMAL.test(decimal)) return Number(decimal);
  const parts = HEXADECIMAL.exec(text.replaceAll(/(?<=[\da-fA-FxX])_(?=[\da-fA-F])/g, ''))?.groups;
  if (parts === undefined) return undefined;
  const { sign = '', whole = '', fraction = '', exponent = '' } = parts;
  const magnitude = Number(BigInt(`0x${whole}${fraction}`)) * 2 ** (Number(exponent) - 4 * fraction.length);
  return sign === '-' ? -magnitude : magnitude;
}

/** A number from `min` to `max`, both included; never infinite. */
export function ratio({ min, max }: { readonly min: number; readonly max?: number }): ValueType<number> {
  return {
    allowed: max === undefined ? `number, ${min} or more` : `number, ${min} to ${max}`,
    read(text) {
      const number = parseNumber(text);
      const fits = number !== undefined && number >= min && number <= (max ?? Number.MAX_VALUE);
      return fits ? accepted(number) : refused();
    },
    write: String,
  };
}

import { accepted, refused, type ValueType } from './value-type';

/** Go's whole number literals: decimal, `0x`, `0b`, `0o` or a leading 0 for octal, `_` between digits. */
const LITERAL =
  /^(?<sign>[+-]?)(?:0[xX](?<hex>(?:_?[\da-fA-F])+)|0[bB](?<binary>(?:_?[01])+)|0[oO]?(?<octal>(?:_?[0-7])+)|(?<decimal>0|[1-9](?:_?\d)*))$/;

const PREFIX = { hex: '0x', binary: '0b', octal: '0o', decimal: '' } as const;

/** The number that a text means, exactly; undefined when it is none. */
export function parseWholeNumber(text: string): bigint | undefined {
  const parts = LITERAL.exec(text)?.groups;
  if (parts === undefined) return undefined;
  for (const [base, prefix] of Object.entries(PREFIX)) {
    const digits = parts[base];
    if (digits === undefined) continue;
    const magnitude = BigInt(prefix + digits.replaceAll('_', ''));
    return parts['sign'] === '-' ? -magnitude : magnitude;
  }
  return undefined;
}

export interface Range {
  readonly min: number;
  /** Without it: the largest number that is still exact. */
  readonly max?: number;
}

/** A whole number within a range, both ends included. */
export function wholeNumber({ min, max }: Range): ValueType<number> {
  const largest = max ?? Number.MAX_SAFE_INTEGER;
  return {
    allowed: max === undefined ? `whole number, ${min} or more` : `whole number, ${min} to ${max}`,
    read(text) {
      const number = parseWholeNumber(text);
      if (number === undefined) return refused(/^[+-]?0\d+$/.test(text) ? 'a leading 0 means octal' : undefined);
      if (number < BigInt(min)) return refused();
      if (number > BigInt(largest)) return refused(max === undefined ? `the largest is ${largest}` : undefined);
      return accepted(Number(number));
    },
    write: String,
  };
}

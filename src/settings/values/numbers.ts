import { type ValueType, accepted, refused } from './value-type';
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

const portNumber = wholeNumber({ min: 0, max: 65535 });

/** A port. Kubernetes sets `<SERVICE>_PORT=tcp://…` for every service beside a pod: one called `grpc` breaks GRPC_PORT. */
export const port: ValueType<number> = {
  ...portNumber,
  read(text) {
    return /^(?:tcp|udp|sctp):\/\//.test(text)
      ? refused(
          'a Kubernetes service link seems to have set it: give the pod enableServiceLinks: false, or its own value for the variable',
        )
      : portNumber.read(text);
  },
};

/** gRPC's own limit on a received message. */
export const DEFAULT_MESSAGE_BYTES = 4_194_304;

const byteCount = wholeNumber({ min: 0, max: 2_147_483_647 });

/** A number of bytes, where 0 means gRPC's own limit, as in the Go service. */
export const messageSize: ValueType<number> = {
  ...byteCount,
  read(text) {
    const reading = byteCount.read(text);
    return 'value' in reading && reading.value === 0 ? accepted(DEFAULT_MESSAGE_BYTES) : reading;
  },
};

const processCount = wholeNumber({ min: 1 });

/** A number of processes, or `auto` in any case. */
export const workers: ValueType<number | 'auto'> = {
  allowed: `${processCount.allowed}, or auto`,
  read: (text) => (text.toLowerCase() === 'auto' ? accepted('auto') : processCount.read(text)),
  write: String,
};

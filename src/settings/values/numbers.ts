import { type ValueType, accepted, refined, rejected } from './value-type';

/** Go's integer literals: decimal, `0x`, `0b`, `0o` or a leading 0 for octal, `_` between digits. */
const LITERAL = /^[+-]?(?:0[xX](?:_?[\da-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|0|[1-9](?:_?\d)*)$/;

/** Parses an integer literal exactly; undefined when the text is not one. */
function parseWholeNumber(text: string): bigint | undefined {
  if (!LITERAL.test(text)) return undefined;
  const magnitude = BigInt(text.replaceAll(/[+_-]/g, '').replace(/^0(?=\d)/, '0o'));
  return text.startsWith('-') ? -magnitude : magnitude;
}

export interface Range {
  readonly min: number;
  /** Default: no upper limit; a whole number must still be exact (at most 2^53 - 1). */
  readonly max?: number;
}

/** A whole number from `min` to `max`, inclusive. */
export function wholeNumber({ min, max }: Range): ValueType<number> {
  const largest = max ?? Number.MAX_SAFE_INTEGER;
  return {
    allowed: max === undefined ? `whole number, ${min} or more` : `whole number, ${min} to ${max}`,
    schema: {
      anyOf: [
        { type: 'integer', minimum: min, maximum: largest },
        { type: 'string', pattern: '^[+-]?[0-9][0-9a-zA-Z_]*$' },
      ],
    },
    parse(text) {
      const number = parseWholeNumber(text);
      if (number === undefined) return rejected(/^[+-]?0\d+$/.test(text) ? 'a leading 0 means octal' : undefined);
      if (number < BigInt(min)) return rejected();
      if (number > BigInt(largest)) return rejected(max === undefined ? `the largest is ${largest}` : undefined);
      return accepted(Number(number));
    },
    format: String,
  };
}

/** Any number of things. */
export const count = wholeNumber({ min: 0 });
/** A number of things that cannot be none. */
export const positive = wholeNumber({ min: 1 });

const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const HEXADECIMAL =
  /^(?<sign>[+-]?)0[xX](?=\.?[\da-fA-F])(?<whole>[\da-fA-F]*)(?:\.(?<fraction>[\da-fA-F]*))?[pP](?<exponent>[+-]?\d+)$/;

/**
 * Parses a floating-point literal of Go: decimal or hexadecimal, optional exponent, `_` between digits. Else undefined.
 */
function parseNumber(text: string): number | undefined {
  const decimal = text.replaceAll(/(?<=\d)_(?=\d)/g, '');
  if (DECIMAL.test(decimal)) return Number(decimal);
  const parts = HEXADECIMAL.exec(text.replaceAll(/(?<=[\da-fA-FxX])_(?=[\da-fA-F])/g, ''))?.groups;
  if (parts === undefined) return undefined;
  const { sign = '', whole = '', fraction = '', exponent = '' } = parts;
  const magnitude = Number(BigInt(`0x${whole}${fraction}`)) * 2 ** (Number(exponent) - 4 * fraction.length);
  return sign === '-' ? -magnitude : magnitude;
}

/** A finite number from `min` to `max`, inclusive. */
export function ratio({ min, max }: Range): ValueType<number> {
  return {
    allowed: max === undefined ? `number, ${min} or more` : `number, ${min} to ${max}`,
    schema: {
      anyOf: [
        { type: 'number', minimum: min, maximum: max ?? Number.MAX_VALUE },
        { type: 'string', pattern: '^[+-]?[.0-9][0-9a-zA-Z_.+-]*$' },
      ],
    },
    parse(text) {
      const number = parseNumber(text);
      const inRange = number !== undefined && number >= min && number <= (max ?? Number.MAX_VALUE);
      return inRange ? accepted(number) : rejected();
    },
    format: String,
  };
}

/** A share of a whole. */
export const fraction = ratio({ min: 0, max: 1 });

/**
 * A port. Kubernetes sets `<SERVICE>_PORT=tcp://…` in every pod for each service of its namespace, so that a service
 * named `grpc` overrides GRPC_PORT; the hint explains it.
 */
function portFrom(min: number): ValueType<number> {
  const number = wholeNumber({ min, max: 65535 });
  return {
    ...number,
    parse(text) {
      return /^(?:tcp|udp|sctp):\/\//.test(text)
        ? rejected(
            'it looks like a Kubernetes service link: set enableServiceLinks: false in the pod, or ' +
              'set the variable explicitly',
          )
        : number.parse(text);
    },
  };
}

/** A port to listen on. */
export const port = portFrom(0);
/** A port to send to. */
export const remotePort = portFrom(1);

/** gRPC's default limit on a received message. */
export const DEFAULT_MESSAGE_BYTES = 4_194_304;

/** A number of bytes; 0 means gRPC's default limit, as in the Go service. */
export const messageSize = refined(wholeNumber({ min: 0, max: 2_147_483_647 }), (bytes) =>
  accepted(bytes === 0 ? DEFAULT_MESSAGE_BYTES : bytes),
);

const processCount = wholeNumber({ min: 1, max: 256 });

/** A number of processes, or `auto`. */
export const workers = orAuto(processCount);

/** A number, or `auto`, in any case. */
export function orAuto(number: ValueType<number>): ValueType<number | 'auto'> {
  return {
    allowed: `${number.allowed}, or auto`,
    parse: (text) => (text.toLowerCase() === 'auto' ? accepted('auto') : number.parse(text)),
    format: String,
  };
}

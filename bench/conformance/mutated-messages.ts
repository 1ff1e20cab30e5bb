type Random = () => number;

function below(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

function oneOf<T>(random: Random, values: readonly T[]): T {
  return values[below(random, values.length)]!;
}

/** A varint, in `padding` bytes more than needed. */
function varint(value: bigint, padding = 0): number[] {
  const bytes: number[] = [];
  for (let left = value; bytes.length === 0 || left > 0n; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80);
  for (let added = 0; added < padding; added += 1) bytes.push(0x80);
  bytes[bytes.length - 1]! &= 0x7f;
  return bytes;
}

const NUMBERS = [0n, 1n, 2n, 5n, 127n, 128n, 300n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 32n + 5n, 2n ** 53n - 1n];
const LARGE_NUMBERS = [2n ** 53n, 2n ** 63n, 2n ** 64n - 1n];
const FIELD_NUMBERS = [5n, 15n, 16n, 2047n, 2n ** 29n - 1n];
const INVALID_FIELD_NUMBERS = [0n, 2n ** 29n, 2n ** 31n - 1n, 2n ** 31n, 2n ** 32n + 1n, 2n ** 60n];
const TEXTS = ['', 'a', 'key', 'käse', '€', '😀', 'x'.repeat(24), 'y'.repeat(25), 'é'.repeat(40), '\u{feff}bom'];
const INVALID_TEXTS = [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x61, 0xe2, 0x82]];
/** Bytes that are wrong, or rare, almost anywhere. */
const FRAGMENTS = [
  'b5cab392adf7a6d0972e 80808080808080808001 80808080808080808002 ffffffffffffffffff01',
  'ffffffffffffffffffff01 8080808000 808080808000 fb01 fc01 0b0c 0e 0f 0c 0001 ffffffff0f ffffffff07',
]
  .flatMap((line) => line.split(' '))
  .map((digits) => [...Buffer.from(digits, 'hex')]);

/** Fields that make up a message: its number, or `unknown`. */
type Writer = (random: Random) => number[];

function tag(random: Random, number: bigint, wireType: number): number[] {
  return varint((number << 3n) | BigInt(wireType), random() < 0.02 ? 1 + below(random, 8) : 0);
}

function integer(random: Random): number[] {
  const value = random() < 0.1 ? oneOf(random, LARGE_NUMBERS) : oneOf(random, NUMBERS);
  return varint(value, random() < 0.05 ? 1 + below(random, 6) : 0);
}

function delimited(random: Random, bytes: readonly number[]): number[] {
  const wrong = random() < 0.005 ? oneOf(random, [1n, 2n ** 31n, 2n ** 32n, 2n ** 63n]) : 0n;
  return [...varint(BigInt(bytes.length) + wrong, random() < 0.02 ? 1 + below(random, 6) : 0), ...bytes];
}

function text(random: Random): number[] {
  const bytes = random() < 0.01 ? oneOf(random, INVALID_TEXTS) : [...Buffer.from(oneOf(random, TEXTS))];
  return delimited(random, bytes);
}

function unknownValue(random: Random, fieldNumber: bigint, wireType: number, depth: number): number[] {
  if (wireType === 0) return integer(random);
  if (wireType === 1) return Array.from({ length: 8 }, () => below(random, 256));
  if (wireType === 2) return delimited(random, [...Buffer.from(oneOf(random, TEXTS))]);
  if (wireType === 5) return Array.from({ length: 4 }, () => below(random, 256));
  if (wireType !== 3) return [];
  const inner = depth > 3 || random() < 0.3 ? [] : unknown(random, depth + 1);
  const end = random() < 0.03 ? oneOf(random, FIELD_NUMBERS) : fieldNumber;
  return [...inner, ...(random() < 0.03 ? [] : tag(random, end, 4))];
}

/** A field that the message does not have, or that it has in another wire type. */
function unknown(random: Random, depth = 0): number[] {
  const wrong = random() < 0.02;
  const fieldNumber = oneOf(random, wrong ? INVALID_FIELD_NUMBERS : [...FIELD_NUMBERS, 1n, 2n, 3n, 4n]);
  const wireType =
    random() < 0.01 ? oneOf(random, [4, 6, 7]) : oneOf(random, [0, 1, 3, 5, ...(fieldNumber > 4n ? [2] : [])]);
  return [...tag(random, fieldNumber, wireType), ...unknownValue(random, fieldNumber, wireType, depth)];
}

function message(random: Random, fields: readonly Writer[]): number[] {
  const bytes: number[] = [];
  for (let left = below(random, 5); left > 0; left -= 1) {
    bytes.push(...(random() < 0.15 ? unknown(random) : oneOf(random, fields)(random)));
  }
  return bytes;
}

function field(fieldNumber: bigint, wireType: number, value: Writer): Writer {
  return (random) => [...tag(random, fieldNumber, wireType), ...value(random)];
}

function nested(fieldNumber: bigint, fields: readonly Writer[]): Writer {
  return field(fieldNumber, 2, (random) => delimited(random, message(random, fields)));
}

const ENTRY = [field(1n, 2, text), field(2n, 2, text)];
const LIMIT = [field(1n, 0, integer), field(2n, 0, integer)];
const WRAPPED = [field(1n, 0, integer)];
const DESCRIPTOR = [
  nested(1n, ENTRY),
  nested(1n, ENTRY),
  nested(2n, LIMIT),
  nested(3n, WRAPPED),
  field(4n, 0, integer),
];
const REQUEST = [field(1n, 2, text), nested(2n, DESCRIPTOR), nested(2n, DESCRIPTOR), field(3n, 0, integer)];

/** Changes bytes without regard to their meaning. */
function damage(random: Random, bytes: number[]): number[] {
  const at = below(random, bytes.length + 1);
  const kind = below(random, 6);
  if (kind === 0) return bytes.slice(0, at);
  if (kind === 1) return bytes.toSpliced(at, 1);
  if (kind === 2) return bytes.toSpliced(at, 0, ...oneOf(random, FRAGMENTS));
  if (kind === 3) return bytes.toSpliced(at, 1, below(random, 256));
  if (kind === 4) return bytes.toSpliced(at, 0, ...bytes.slice(at, at + below(random, 12)));
  return bytes.map((byte, index) => (index === at ? byte ^ (1 << below(random, 8)) : byte));
}

/**
 * A RateLimitRequest with rare encodings and, more often than not, errors: about half of them are valid. The same
 * sequence of random numbers makes the same message.
 */
export function mutatedMessage(random: Random): Buffer {
  let bytes = message(random, REQUEST);
  for (let left = random() < 0.5 ? 0 : 1 + below(random, 3); left > 0; left -= 1) bytes = damage(random, bytes);
  return Buffer.from(bytes);
}

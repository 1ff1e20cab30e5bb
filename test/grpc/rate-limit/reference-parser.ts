import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import { decodeRequest } from '../../../src/grpc/rate-limit/decode-request';
import { ProtobufError } from '../../../src/grpc/rate-limit/protobuf-reader';
import { NO_HITS_ADDEND, type RateLimitRequest } from '../../../src/limiter/request';
import { unitByNumber } from '../../../src/rules/unit';
import { seededRandom } from '../http2/seeded-random';
import { mutatedMessage } from './mutated-messages';

/** A request as the recordings have it: see bench/conformance/protobuf/main.go. */
export interface ParsedRequest {
  domain: string;
  descriptors: ParsedDescriptor[];
  hitsAddend: number;
}

export interface ParsedDescriptor {
  entries: [string, string][];
  limit?: { requestsPerUnit: number; unit: number };
  hitsAddend?: string;
  isNegativeHits: boolean;
}

class Invalid extends Error {}

interface Field {
  readonly number: bigint;
  readonly wireType: bigint;
  /** The value of a varint. */
  readonly value: bigint;
  /** The content of a length-delimited field. */
  readonly content: Buffer;
}

const EMPTY = Buffer.alloc(0);
const MAX_FIELD_NUMBER = 2n ** 29n - 1n;
const MAX_FIELD_NUMBER_IN_GROUP = 2n ** 31n - 1n;

class Bytes {
  #at = 0;
  constructor(readonly bytes: Buffer) {}

  get isAtEnd(): boolean {
    return this.#at === this.bytes.length;
  }

  take(length: bigint): Buffer {
    if (length > BigInt(this.bytes.length - this.#at)) throw new Invalid('truncated');
    this.#at += Number(length);
    return this.bytes.subarray(this.#at - Number(length), this.#at);
  }

  varint(): bigint {
    let value = 0n;
    for (let index = 0n; index < 10n; index += 1n) {
      const byte = BigInt(this.take(1n)[0]!);
      value |= (byte & 0x7fn) << (7n * index);
      if (byte < 0x80n) {
        if (value >= 2n ** 64n) throw new Invalid('overflow');
        return value;
      }
    }
    throw new Invalid('long varint');
  }

  field(maxNumber: bigint, depth: number): Field {
    const tag = this.varint();
    const number = tag >> 3n;
    const wireType = tag & 7n;
    if (number === 0n || number > maxNumber) throw new Invalid('field number');
    const field = { number, wireType, value: 0n, content: EMPTY };
    if (wireType === 0n) return { ...field, value: this.varint() };
    if (wireType === 1n) this.take(8n);
    else if (wireType === 2n) return { ...field, content: this.take(this.varint()) };
    else if (wireType === 3n) this.group(number, depth + 1);
    else if (wireType === 5n) this.take(4n);
    else if (wireType !== 4n || depth === 0) throw new Invalid('wire type');
    return field;
  }

  group(number: bigint, depth: number): void {
    if (depth > 100) throw new Invalid('groups nested too deeply');
    for (;;) {
      const field = this.field(MAX_FIELD_NUMBER_IN_GROUP, depth);
      if (field.wireType !== 4n) continue;
      if (field.number !== number) throw new Invalid('end of another group');
      return;
    }
  }
}

function fieldsOf(bytes: Buffer): Field[] {
  const rest = new Bytes(bytes);
  const fields: Field[] = [];
  while (!rest.isAtEnd) fields.push(rest.field(MAX_FIELD_NUMBER, 0));
  return fields;
}

function ofType(fields: readonly Field[], number: bigint, wireType: bigint): Field[] {
  return fields.filter((field) => field.number === number && field.wireType === wireType);
}

/** The fields of a message whose occurrences are merged; undefined if it does not occur. */
function merged(fields: readonly Field[], number: bigint): Field[] | undefined {
  const occurrences = ofType(fields, number, 2n);
  return occurrences.length === 0 ? undefined : occurrences.flatMap(({ content }) => fieldsOf(content));
}

function text(fields: readonly Field[], number: bigint): string {
  const texts = ofType(fields, number, 2n).map(({ content }) => content);
  // All occurrences must be valid, the last one counts.
  if (!texts.every((bytes) => isUtf8(bytes))) throw new Invalid('UTF-8');
  return texts.at(-1)?.toString() ?? '';
}

function integer(fields: readonly Field[], number: bigint): bigint {
  return ofType(fields, number, 0n).at(-1)?.value ?? 0n;
}

function parseDescriptor(bytes: Buffer): ParsedDescriptor {
  const fields = fieldsOf(bytes);
  const limit = merged(fields, 2n);
  const hitsAddend = merged(fields, 3n);
  return {
    entries: ofType(fields, 1n, 2n).map(({ content }) => {
      const entry = fieldsOf(content);
      return [text(entry, 1n), text(entry, 2n)];
    }),
    ...(limit && {
      limit: {
        requestsPerUnit: Number(BigInt.asUintN(32, integer(limit, 1n))),
        unit: Number(BigInt.asIntN(32, integer(limit, 2n))),
      },
    }),
    ...(hitsAddend && { hitsAddend: String(integer(hitsAddend, 1n)) }),
    isNegativeHits: integer(fields, 4n) !== 0n,
  };
}

/**
 * A second parser of RateLimitRequests, written for clarity only: it slices, computes in bigint and recurses. The recorded results
 * of Go's library check it. Returns undefined if the bytes are not valid.
 */
export function parseByReference(bytes: Buffer): ParsedRequest | undefined {
  try {
    const fields = fieldsOf(bytes);
    return {
      domain: text(fields, 1n),
      descriptors: ofType(fields, 2n, 2n).map(({ content }) => parseDescriptor(content)),
      hitsAddend: Number(BigInt.asUintN(32, integer(fields, 3n))),
    };
  } catch (error) {
    if (error instanceof Invalid) return undefined;
    throw error;
  }
}

/** The same request as the decoder returns it; see {@link withoutRounding}. */
export function asDecoded({ domain, descriptors, hitsAddend }: ParsedRequest): RateLimitRequest {
  return {
    domain,
    hitsAddend,
    descriptors: descriptors.map((descriptor) => ({
      entries: descriptor.entries.map(([key, value]) => ({ key, value })),
      limit: descriptor.limit && {
        requestsPerUnit: descriptor.limit.requestsPerUnit,
        unit: unitByNumber(descriptor.limit.unit),
      },
      hitsAddend: descriptor.hitsAddend === undefined ? NO_HITS_ADDEND : countable(Number(descriptor.hitsAddend)),
      isNegativeHits: descriptor.isNegativeHits,
    })),
  };
}

/** A decoded request without the differences that rounding makes to hits above 2^53 - 1, which are rejected. */
export function withoutRounding(request: RateLimitRequest): RateLimitRequest {
  const descriptors = request.descriptors.map((it) => ({ ...it, hitsAddend: countable(it.hitsAddend) }));
  return { ...request, descriptors };
}

function countable(hits: number): number {
  return Math.min(hits, 2 ** 53);
}

/** The decoded request; undefined if the decoder rejects it. */
export function decode(bytes: Buffer): RateLimitRequest | undefined {
  try {
    return withoutRounding(decodeRequest(bytes));
  } catch (error) {
    if (error instanceof ProtobufError) return undefined;
    throw error;
  }
}

/** Compares the decoder with the reference parser on mutated messages. */
export function expectSameAsReference(messages: number, seed: string): void {
  const random = seededRandom(seed);
  const differences: string[] = [];
  let accepted = 0;
  for (let left = messages; left > 0; left -= 1) {
    const bytes = mutatedMessage(random);
    const parsed = parseByReference(bytes);
    if (parsed !== undefined) accepted += 1;
    if (!isDeepStrictEqual(decode(bytes), parsed && asDecoded(parsed))) differences.push(bytes.toString('hex'));
  }

  expect(differences).toEqual([]);
  // Otherwise the messages test one side only.
  expect(accepted / messages).toBeGreaterThan(0.3);
  expect(accepted / messages).toBeLessThan(0.7);
}

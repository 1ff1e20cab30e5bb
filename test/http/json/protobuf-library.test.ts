import { type JsonValue, createFileRegistry, fromBinary, fromJsonString } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { DESCRIPTOR_SET } from '../../../src/gen/descriptor-set';
import { readRequest } from '../../../src/http/json/read-request';
import { MalformedBody } from '../../../src/http/server/errors';
import { NO_HITS_ADDEND, type RateLimitRequest } from '../../../src/limiter/request';
import { UNIT_NAMES, unitByNumber } from '../../../src/rules/unit';

/** The message as the protobuf library builds it from its descriptor. */
interface RequestMessage {
  readonly domain: string;
  readonly descriptors: readonly {
    readonly entries: readonly { readonly key: string; readonly value: string }[];
    readonly limit?: { readonly requestsPerUnit: number; readonly unit: number };
    readonly hitsAddend?: bigint;
    readonly isNegativeHits: boolean;
  }[];
  readonly hitsAddend: number;
}

const files = fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTOR_SET, 'base64'));
const schema = createFileRegistry(files).getMessage('envoy.service.ratelimit.v3.RateLimitRequest')!;

/** The request as the protobuf library reads it; undefined when it rejects the text. */
function readByLibrary(text: string): RateLimitRequest | undefined {
  let message: RequestMessage;
  try {
    message = fromJsonString(schema, text) as unknown as RequestMessage;
  } catch {
    return undefined;
  }
  return {
    domain: message.domain,
    descriptors: message.descriptors.map(({ entries, limit, hitsAddend, isNegativeHits }) => ({
      entries: entries.map(({ key, value }) => ({ key, value })),
      limit: limit && { requestsPerUnit: limit.requestsPerUnit, unit: unitByNumber(limit.unit) },
      hitsAddend: hitsAddend === undefined ? NO_HITS_ADDEND : Number(hitsAddend),
      isNegativeHits,
    })),
    hitsAddend: message.hitsAddend,
  };
}

function readByWeir(text: string): RateLimitRequest | undefined {
  try {
    return readRequest(text);
  } catch (error) {
    if (error instanceof MalformedBody) return undefined;
    throw error;
  }
}

const wrong = fc.constantFrom<JsonValue>(null, true, -1, 1.5, 2 ** 32, 2 ** 64 * 2, '', 'x', [], {}, [null], { x: 1 });

/** Mostly the right value, at times one of another type. */
function field<T extends JsonValue>(value: fc.Arbitrary<T>): fc.Arbitrary<JsonValue> {
  return fc.oneof({ weight: 20, arbitrary: value }, { weight: 1, arbitrary: wrong });
}

/** An object with some of the fields, each under one of its names, at times with an unknown one. */
function messageOf(fields: Record<string, fc.Arbitrary<JsonValue>>): fc.Arbitrary<JsonValue> {
  const unknown = { weight: 1, arbitrary: fc.record({ unknown: wrong }) };
  const known = { weight: 30, arbitrary: fc.record(fields, { requiredKeys: [] }) };
  return fc.oneof(known, unknown) as fc.Arbitrary<JsonValue>;
}

const text = fc.string({ unit: 'grapheme', maxLength: 5 });
const integer = fc.oneof(
  fc.nat(),
  fc.nat().map((number) => `${number}`),
);
const list = { maxLength: 3 };
const entry = messageOf({ key: field(text), value: field(text) });
const limit = messageOf({
  requestsPerUnit: field(integer),
  requests_per_unit: field(integer),
  unit: field(fc.oneof(fc.constantFrom(...UNIT_NAMES), fc.integer({ min: -1, max: 9 }))),
});
const descriptor = messageOf({
  entries: field(fc.array(entry, list)),
  limit: field(limit),
  hitsAddend: field(integer),
  isNegativeHits: field(fc.boolean()),
  is_negative_hits: field(fc.boolean()),
});
const request = messageOf({
  domain: field(text),
  descriptors: field(fc.array(descriptor, list)),
  hitsAddend: field(integer),
});

function withHits(hits: string): string {
  return `{"hitsAddend":${hits}}`;
}

function withOwnHits(hits: string): string {
  return `{"descriptors":[{"hitsAddend":${hits}}]}`;
}

describe('a request in JSON', () => {
  it('is read or rejected as by the protobuf library', () => {
    fc.assert(
      fc.property(request, fc.nat(2), (json, indent) => {
        const body = JSON.stringify(json, null, indent);
        expect(readByWeir(body)).toEqual(readByLibrary(body));
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['a fraction beyond the precision of a double', withHits('0.99999999999999999999')],
    ['an integer with a sign, as a string', withHits('"+1"')],
    ['an integer with a leading zero, as a string', withHits('"01"')],
    ['a hexadecimal integer, as a string', withHits('"0x1"')],
    ['a 64-bit integer with white space, as a string', withOwnHits('" 1"')],
  ])('is rejected with %s, which the protobuf library accepts', (_what, body) => {
    expect(readByLibrary(body)).toBeDefined();
    expect(readByWeir(body)).toBeUndefined();
  });

  it.each([
    ['a 64-bit integer in exponent notation, as a string', withOwnHits('"1e2"')],
    ['a 64-bit integer with a fraction of zero, as a string', withOwnHits('"1.0"')],
    ['the largest 64-bit integer, as a number', withOwnHits('18446744073709551615')],
  ])('may have %s, which the protobuf library rejects', (_what, body) => {
    expect(readByLibrary(body)).toBeUndefined();
    expect(readByWeir(body)).toBeDefined();
  });
});

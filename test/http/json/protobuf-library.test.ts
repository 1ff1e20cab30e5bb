import { type JsonValue, createFileRegistry, fromBinary, fromJson, fromJsonString, toJson } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { DESCRIPTOR_SET } from '../../../src/gen/descriptor-set';
import { readRequest } from '../../../src/http/json/read-request';
import { writeVerdict } from '../../../src/http/json/json-handler';
import { MalformedBody } from '../../../src/http/errors';
import { NO_HITS_ADDEND, type RateLimitRequest } from '../../../src/limiter/request';
import { Code, type Verdict } from '../../../src/limiter/verdict';
import { UNIT_NAMES, type UnitName, unitByNumber } from '../../../src/rules/unit';
import fc from '../../support/data/properties';
import type { Limit } from '../../../src/counting/limit';
import { boundLimit } from '../../support/data/rules';

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

const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTOR_SET, 'base64')));
const requestSchema = registry.getMessage('envoy.service.ratelimit.v3.RateLimitRequest')!;
const responseSchema = registry.getMessage('envoy.service.ratelimit.v3.RateLimitResponse')!;

/** The request as the protobuf library reads it; undefined when it rejects the text. */
function readByLibrary(text: string): RateLimitRequest | undefined {
  let message: RequestMessage;
  try {
    message = fromJsonString(requestSchema, text) as unknown as RequestMessage;
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
    // Zero for minus zero.
    hitsAddend: message.hitsAddend + 0,
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

/** A request with one descriptor. */
function having(fields: string): string {
  return `{"descriptors":[{${fields}}]}`;
}

const INTEGERS = ['0', '-0', '0.0', '0e99', '5', '5.0', '1e2', '1E+2', '1.5e1', '100e-2', '120.00e-1', '4294967295'];
const UNITS = [...UNIT_NAMES.map((name) => `"${name}"`), ...UNIT_NAMES.keys(), 8, -1, 2147483647, -2147483648, '1e3'];

describe('a request in JSON', () => {
  it('is read or rejected as by the protobuf library', () => {
    fc.assert(
      fc.property(request, fc.nat(2), (json, indent) => {
        const body = JSON.stringify(json, null, indent);
        expect(readByWeir(body)).toEqual(readByLibrary(body));
      }),
      { numRuns: 1_000 },
    );
  });

  it('is accepted after a mutation only if it is still JSON', () => {
    fc.assert(
      fc.property(request, fc.nat(), fc.nat(4), fc.string({ maxLength: 3 }), (json, where, cut, inserted) => {
        const body = JSON.stringify(json);
        const at = where % body.length;
        const mutated = body.slice(0, at) + inserted + body.slice(at + cut);
        fc.pre(readByWeir(mutated) !== undefined);
        expect(() => void JSON.parse(mutated)).not.toThrow();
      }),
      { numRuns: 300, maxSkipsPerRun: 1_000 },
    );
  });

  it.each([
    '{}',
    '{"domain":null,"descriptors":null,"hitsAddend":null}',
    having('"entries":null,"limit":null,"hitsAddend":null,"isNegativeHits":null'),
    having('"entries":[{"key":null,"value":null}],"limit":{"requestsPerUnit":null,"unit":null}'),
    having('"limit":{"requests_per_unit":7},"hits_addend":3,"is_negative_hits":true'),
    '{"hits_addend":4}',
    having('"hitsAddend":0'),
    having('"hitsAddend":"9007199254740993"'),
    having('"hitsAddend":"18446744073709551615"'),
    '{"domain":"\\u00e9\\ud83d\\ude00\\/\\b\\f\\n\\r\\té😀\u2028\\u0000\u007f"}',
    ...UNITS.map((unit) => having(`"limit":{"unit":${unit}}`)),
    ...INTEGERS.flatMap((number) => [withHits(number), withHits(`"${number}"`)]),
  ])('is read as by the protobuf library: %s', (body) => {
    expect(readByLibrary(body)).toBeDefined();
    expect(readByWeir(body)).toEqual(readByLibrary(body));
  });

  it.each([
    ['a fraction beyond the precision of a double', withHits('0.99999999999999999999')],
    ['an integer with a sign, as a string', withHits('"+1"')],
    ['an integer with a leading zero, as a string', withHits('"01"')],
    ['a 64-bit integer with white space, as a string', having('"hitsAddend":" 1"')],
  ])('is rejected with %s, which the protobuf library accepts', (_what, body) => {
    expect(readByLibrary(body)).toBeDefined();
    expect(readByWeir(body)).toBeUndefined();
  });

  it.each([
    ['a 64-bit integer in exponent notation, as a string', '"1e2"', 100],
    ['the largest 64-bit integer, as a number', '18446744073709551615', 2 ** 64],
  ])('may have %s, which the protobuf library rejects', (_what, hits, read) => {
    expect(readByLibrary(having(`"hitsAddend":${hits}`))).toBeUndefined();
    expect(readByWeir(having(`"hitsAddend":${hits}`))?.descriptors[0]?.hitsAddend).toBe(read);
  });
});

const code = fc.constantFrom(Code.OK, Code.OVER_LIMIT);
const uint32 = fc.oneof(fc.constantFrom(0, 1, 4294967295), fc.nat());
/** Often one with characters that need escapes. */
const anyText = fc.oneof(text, fc.constant('a "b"\\\n'));
const verdict: fc.Arbitrary<Verdict> = fc.record({
  overallCode: code,
  statuses: fc.array(
    fc.record({
      code,
      currentLimit: fc.option(
        fc
          .tuple(
            uint32,
            fc.constantFrom(...(UNIT_NAMES.slice(1) as readonly UnitName[])),
            fc.record({ unitMultiplier: fc.constantFrom(1, 5), name: anyText }),
          )
          .map((of) => boundLimit(...of)),
        { nil: undefined },
      ),
      limitRemaining: uint32,
      secondsUntilReset: fc.option(fc.nat({ max: 31_622_400 }), { nil: undefined }),
    }),
    list,
  ),
  responseHeaders: fc.array(fc.record({ key: anyText, value: anyText }), list),
  dynamicMetadata: fc.option(
    fc.constantFrom({ domain: 'd', list: [{ entries: ['"a"=b'] }], ratio: 0.5, none: null }, {}),
    {
      nil: undefined,
    },
  ),
});

/** The verdict as the protobuf library writes it, from JSON with every field. */
function writeByLibrary({ overallCode, statuses, responseHeaders, dynamicMetadata }: Verdict): JsonValue {
  const full = {
    overallCode,
    statuses: statuses.map(({ currentLimit, secondsUntilReset, ...status }) => ({
      code: status.code,
      currentLimit: currentLimit === undefined ? null : limitOf(currentLimit),
      limitRemaining: status.limitRemaining,
      durationUntilReset: secondsUntilReset === undefined ? null : `${secondsUntilReset}s`,
    })),
    responseHeadersToAdd: responseHeaders.map(({ key, value }) => ({ key, value })),
    dynamicMetadata: dynamicMetadata ?? null,
  };
  return toJson(responseSchema, fromJson(responseSchema, full as JsonValue));
}

/** A limit as the protocol has it. */
function limitOf({ requestsPerUnit, unit, name }: Limit): object {
  return { requestsPerUnit, unit: unit.name, name };
}

it('a verdict is written as by the protobuf library, without default values', () => {
  fc.assert(
    fc.property(verdict, (it) => {
      expect(JSON.parse(writeVerdict(it))).toEqual(writeByLibrary(it));
    }),
  );
});

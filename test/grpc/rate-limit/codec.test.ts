import fc from 'fast-check';
import {
  RateLimitRequest as GeneratedRequest,
  RateLimitResponse as GeneratedResponse,
} from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { decodeRequest } from '../../../src/grpc/rate-limit/decode-request';
import { encodeResponse } from '../../../src/grpc/rate-limit/encode-response';
import { ProtobufError } from '../../../src/grpc/rate-limit/protobuf-reader';
import { MAX_TEXT } from '../../../src/limiter/request-bounds';
import { NO_HITS_ADDEND } from '../../../src/limiter/request';
import { Code, type Verdict } from '../../../src/limiter/verdict';
import { UNIT_NAMES, unitByNumber } from '../../../src/rules/unit';
import { heapAfterCollection } from '../../support/processes/collect-garbage';

const text = fc.oneof(fc.string({ maxLength: 40 }), fc.string({ unit: 'grapheme', maxLength: 40 }));
const uint32 = fc.oneof(fc.nat(300), fc.integer({ min: 0, max: 0xffffffff }));
const unitNumber = fc.integer({ min: 0, max: 9 });

const generatedRequest: fc.Arbitrary<GeneratedRequest> = fc.record({
  domain: text,
  hitsAddend: uint32,
  descriptors: fc.array(
    fc.record({
      entries: fc.array(fc.record({ key: text, value: text }), { maxLength: 4 }),
      limit: fc.option(fc.record({ requestsPerUnit: uint32, unit: unitNumber }), { nil: undefined }),
      hitsAddend: fc.option(fc.bigInt({ min: 0n, max: 2n ** 53n - 1n }), { nil: undefined }),
      isNegativeHits: fc.boolean(),
    }),
    { maxLength: 4 },
  ),
});

describe('decodeRequest', () => {
  it('decodes a request as the generated code does', () => {
    fc.assert(
      fc.property(generatedRequest, (message) => {
        const { domain, hitsAddend, descriptors } = GeneratedRequest.decode(GeneratedRequest.encode(message).finish());
        expect(decodeRequest(GeneratedRequest.encode(message).finish())).toEqual({
          domain,
          hitsAddend,
          descriptors: descriptors.map((descriptor) => ({
            entries: descriptor.entries,
            limit: descriptor.limit && {
              requestsPerUnit: descriptor.limit.requestsPerUnit,
              unit: unitByNumber(descriptor.limit.unit),
            },
            hitsAddend: descriptor.hitsAddend === undefined ? NO_HITS_ADDEND : Number(descriptor.hitsAddend),
            isNegativeHits: descriptor.isNegativeHits,
          })),
        });
      }),
    );
  });

  it('decodes a hits addend above 2^53 - 1 as a number above 2^53 - 1', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }), (hitsAddend) => {
        const descriptor = { entries: [], limit: undefined, hitsAddend, isNegativeHits: false };
        const bytes = GeneratedRequest.encode({ domain: 'd', descriptors: [descriptor], hitsAddend: 0 }).finish();
        expect(decodeRequest(bytes).descriptors[0]?.hitsAddend).toBeGreaterThan(Number.MAX_SAFE_INTEGER);
      }),
    );
  });

  function hex(bytes: string) {
    return Buffer.from(bytes.replaceAll(' ', ''), 'hex');
  }
  it.each([
    [
      'unknown fields of every kind',
      '0a0161 f80101 f90101020304050607 08 fa010161 fd0101020304'.replaceAll(' ', ''),
      'a',
    ],
    ['a group, which protobuf has deprecated', '0a0161 fb01 0801 fc01', 'a'],
    ['nested groups', '0a0161 fb01 8302 8402 fc01', 'a'],
    ['all but the last occurrence of a scalar', '0a0161 0a0162', 'b'],
    ['the domain in another wire type', '0801 0a0161', 'a'],
  ])('skips %s', (_problem, bytes, domain) => {
    expect(decodeRequest(hex(bytes)).domain).toBe(domain);
  });

  it('merges the occurrences of a message', () => {
    // descriptor 1: limit { requests_per_unit: 5 }, limit { unit: HOUR }
    const { limit } = decodeRequest(hex('1208 1202 0805 1202 1003')).descriptors[0] ?? {};
    expect(limit).toEqual({ requestsPerUnit: 5, unit: unitByNumber(3) });
  });

  it.each([
    ['ends in a tag', '80', 'truncated field at byte 1'],
    ['ends in a text', '0a0561', 'length beyond the end of the message at byte 2'],
    ['ends in a number', '1880', 'truncated field at byte 2'],
    ['has a nested message longer than itself', '12020a05', 'length beyond the end of the message at byte 4'],
    ['has field number 0', '0001', 'field number 0 at byte 1'],
    ['has an unknown wire type', '0f', 'invalid wire type 7 at byte 1'],
    ['has a group without an end', 'fb0108', 'truncated field at byte 3'],
    ['has a group that ends with the tag of another', 'fb018402', 'mismatched end of a group at byte 4'],
    ['has the end of a group that was not begun', '0c', 'invalid wire type 4 at byte 1'],
    ['has a varint of eleven bytes', `18${'80'.repeat(10)}01`, 'varint longer than 10 bytes at byte 11'],
    ['has a varint of more than 64 bits', `18${'80'.repeat(9)}02`, 'varint exceeds 64 bits at byte 11'],
    ['has a tag of more than 64 bits', 'b5cab392adf7a6d0972e0a046e6f70651800', 'varint exceeds 64 bits at byte 10'],
    ['has a field number above 2^29 - 1', '8080808010 00', 'field number too large at byte 5'],
    ['has a length above 2^32', '0a8180808010 61', 'length beyond the end of the message at byte 6'],
    ['has groups nested more than 100 deep', 'fb01'.repeat(200), 'groups nested too deeply at byte 202'],
    ['has a text that is not UTF-8', '0a02c328', 'invalid UTF-8 at byte 2'],
    ['has a text that ends inside a character', '0a01e2', 'invalid UTF-8 at byte 2'],
  ])('rejects a request that %s, with the byte offset', (_problem, bytes, message) => {
    expect(() => decodeRequest(hex(bytes))).toThrow(new ProtobufError(message));
  });

  function repeated(field: string, times: number) {
    return Buffer.from(field.repeat(times), 'hex');
  }
  function descriptorOf(entries: Buffer) {
    const length = Buffer.from([
      0x80 | (entries.length & 0x7f),
      0x80 | ((entries.length >> 7) & 0x7f),
      entries.length >> 14,
    ]);
    return Buffer.concat([Buffer.from([0x12]), length, entries]);
  }
  const TOO_MANY_FIELDS = 'a message may have at most 65536 fields';

  it('counts the descriptors over the maximum, and keeps none of them', () => {
    const { descriptors } = decodeRequest(repeated('12040a020a00', 10_000));
    expect(descriptors).toHaveLength(10_000);
    expect(new Set(descriptors.slice(1_000)).size).toBe(1);
    expect(descriptors[1_000]?.entries).toEqual([]);
  });

  it('counts the entries over the maximum, and keeps none of them', () => {
    const { entries } = decodeRequest(descriptorOf(repeated('0a030a016b', 10_000))).descriptors[0]!;
    expect(entries).toHaveLength(10_000);
    expect(new Set(entries.slice(100)).size).toBe(1);
    expect(entries.slice(99, 101)).toEqual([
      { key: 'k', value: '' },
      { key: '', value: '' },
    ]);
  });

  it.each([
    [
      'descriptors',
      repeated('1200', 10_001),
      'a request may have at most 1000 descriptors, this one has more than 10000',
    ],
    [
      'entries',
      Buffer.concat([repeated('1200', 1), descriptorOf(repeated('0a00', 10_001))]),
      'a descriptor may have at most 100 entries, descriptor 2 has more than 10000',
    ],
  ])('stops reading at %s that are too many to be counted', (_what, bytes, message) => {
    // What follows is not valid, and is not read.
    expect(() => decodeRequest(Buffer.concat([bytes, Buffer.from([0xff])]))).toThrow(message);
  });

  it.each([
    ['domains', '0a00'],
    ['hits', '1801'],
    ['unknown fields', '7800'],
    ['groups', '7b7c'],
  ])('stops reading at 65,537 %s', (_what, field) => {
    expect(decodeRequest(repeated(field, 32_768)).descriptors).toEqual([]);
    expect(() => decodeRequest(Buffer.concat([repeated(field, 65_537), Buffer.from([0xff])]))).toThrow(TOO_MANY_FIELDS);
  });

  it('decodes texts of as many bytes as the permitted characters can have, and stops at longer ones', () => {
    const domain = '€'.repeat(MAX_TEXT);
    const bytes = Buffer.concat([Buffer.from([0x0a, 0x80, 0x80, 0x30]), Buffer.from(domain)]);
    expect(decodeRequest(bytes).domain).toBe(domain);
    // What follows is not valid, and is not read.
    const more = Buffer.concat([bytes, Buffer.from([0x0a, 25]), Buffer.alloc(25, 'x'), Buffer.from([0xff])]);
    expect(() => decodeRequest(more)).toThrow('the texts of a message may have at most 786432 bytes');
  });

  it('counts the fields of nested messages', () => {
    const limits = descriptorOf(repeated('1200', 40_000));
    expect(() => decodeRequest(Buffer.concat([limits, limits]))).toThrow(TOO_MANY_FIELDS);
  });

  it('decodes or rejects arbitrary bytes, and terminates', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          decodeRequest(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtobufError);
        }
      }),
      { numRuns: 20_000 },
    );
  });
});

const verdict: fc.Arbitrary<Verdict> = fc.record({
  overallCode: fc.constantFrom(Code.OK, Code.OVER_LIMIT),
  statuses: fc.array(
    fc.record({
      code: fc.constantFrom(Code.OK, Code.OVER_LIMIT),
      currentLimit: fc.option(
        fc.record({
          requestsPerUnit: uint32,
          unit: fc.integer({ min: 1, max: 7 }).map((number) => unitByNumber(number) ?? assertUnit(number)),
          name: text,
        }),
        { nil: undefined },
      ),
      limitRemaining: uint32,
      secondsUntilReset: fc.option(fc.nat(31_536_000), { nil: undefined }),
    }),
    { maxLength: 30 },
  ),
  responseHeaders: fc.array(fc.record({ key: text, value: fc.string({ maxLength: 300 }) }), { maxLength: 3 }),
  dynamicMetadata: fc.option(fc.constant({ domain: 'd', list: [1, 'two', null, { three: true }] }), { nil: undefined }),
});

function assertUnit(number: number): never {
  throw new Error(`no unit ${UNIT_NAMES[number]}`);
}

/** Bytes of the heap and of buffers after a garbage collection. */
function keptBytes(): number {
  return heapAfterCollection() + process.memoryUsage().arrayBuffers;
}

describe('encodeResponse', () => {
  it('encodes a verdict so that the generated code decodes it', () => {
    fc.assert(
      fc.property(verdict, (answer) => {
        const read = GeneratedResponse.decode(encodeResponse(answer));
        expect(read).toEqual({
          overallCode: answer.overallCode,
          statuses: answer.statuses.map(({ code, currentLimit, limitRemaining, secondsUntilReset }) => ({
            code,
            currentLimit: currentLimit && { ...currentLimit, unit: currentLimit.unit.number },
            limitRemaining,
            durationUntilReset:
              secondsUntilReset === undefined ? undefined : { seconds: BigInt(secondsUntilReset), nanos: 0 },
          })),
          responseHeadersToAdd: answer.responseHeaders.map((header) => ({ ...header, rawValue: Buffer.alloc(0) })),
          requestHeadersToAdd: [],
          rawBody: Buffer.alloc(0),
          dynamicMetadata: answer.dynamicMetadata,
        });
      }),
    );
  });

  it('keeps few bytes for the limit of each rule', () => {
    const bytesBefore = keptBytes();
    const limits = Array.from({ length: 10_000 }, (_, requestsPerUnit) => ({
      requestsPerUnit,
      unit: unitByNumber(2) ?? assertUnit(2),
      name: '',
    }));
    for (const currentLimit of limits) {
      const status = { code: Code.OK, currentLimit, limitRemaining: 1, secondsUntilReset: 60 };
      encodeResponse({
        overallCode: Code.OK,
        statuses: [status],
        responseHeaders: [],
        dynamicMetadata: undefined,
      });
    }
    expect((keptBytes() - bytesBefore) / limits.length).toBeLessThan(500);
    expect(limits).toHaveLength(10_000);
  });

  it('encodes the same bytes as the generated code', () => {
    const answer: Verdict = {
      overallCode: Code.OVER_LIMIT,
      statuses: [
        {
          code: Code.OVER_LIMIT,
          currentLimit: { requestsPerUnit: 300, unit: unitByNumber(2) ?? assertUnit(2), name: 'n' },
          limitRemaining: 0,
          secondsUntilReset: 60,
        },
        { code: Code.OK, currentLimit: undefined, limitRemaining: 4_294_967_295, secondsUntilReset: undefined },
      ],
      responseHeaders: [{ key: 'RateLimit-Limit', value: '300' }],
      dynamicMetadata: undefined,
    };
    const bytes = Buffer.from(encodeResponse(answer));
    expect(bytes).toEqual(Buffer.from(GeneratedResponse.encode(GeneratedResponse.decode(bytes)).finish()));
  });
});

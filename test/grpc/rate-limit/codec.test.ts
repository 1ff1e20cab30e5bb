import fc from 'fast-check';
import {
  RateLimitRequest as WireRequest,
  RateLimitResponse as WireResponse,
} from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { decodeRequest } from '../../../src/grpc/rate-limit/decode-request';
import { encodeResponse } from '../../../src/grpc/rate-limit/encode-response';
import { WireError } from '../../../src/grpc/rate-limit/protobuf-reader';
import { NO_HITS_ADDEND } from '../../../src/limiter/request';
import { Code, type Verdict } from '../../../src/limiter/verdict';
import { UNIT_NAMES, unitByNumber } from '../../../src/rules/unit';

const text = fc.oneof(fc.string({ maxLength: 40 }), fc.string({ unit: 'grapheme', maxLength: 40 }));
const uint32 = fc.oneof(fc.nat(300), fc.integer({ min: 0, max: 0xffffffff }));
const unitNumber = fc.integer({ min: 0, max: 9 });

const wireRequest: fc.Arbitrary<WireRequest> = fc.record({
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

describe('a request', () => {
  it('is read as the generated code reads it', () => {
    fc.assert(
      fc.property(wireRequest, (message) => {
        const { domain, hitsAddend, descriptors } = WireRequest.decode(WireRequest.encode(message).finish());
        expect(decodeRequest(WireRequest.encode(message).finish())).toEqual({
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

  it('with hits beyond 2^53 - 1 never looks as if they were fewer', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }), (hitsAddend) => {
        const descriptor = { entries: [], limit: undefined, hitsAddend, isNegativeHits: false };
        const bytes = WireRequest.encode({ domain: 'd', descriptors: [descriptor], hitsAddend: 0 }).finish();
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
    ['a group, which protobuf has given up', '0a0161 fb01 0801 fc01', 'a'],
    ['nested groups', '0a0161 fb01 8302 8402 fc01', 'a'],
    ['a scalar given twice: the last one wins', '0a0161 0a0162', 'b'],
    ['the domain in another wire type: not the domain', '0801 0a0161', 'a'],
  ])('passes over %s', (_what, bytes, domain) => {
    expect(decodeRequest(hex(bytes)).domain).toBe(domain);
  });

  it('merges messages that are given twice', () => {
    // descriptor 1: limit { requests_per_unit: 5 }, limit { unit: HOUR }
    const { limit } = decodeRequest(hex('1208 1202 0805 1202 1003')).descriptors[0] ?? {};
    expect(limit).toEqual({ requestsPerUnit: 5, unit: unitByNumber(3) });
  });

  it.each([
    ['ends in a tag', '80', 'an end in the middle of a field at byte 1'],
    ['ends in a text', '0a0561', 'a length that goes beyond the message at byte 2'],
    ['ends in a number', '1880', 'an end in the middle of a field at byte 2'],
    ['has a nested message longer than itself', '12020a05', 'a length that goes beyond the message at byte 4'],
    ['has field number 0', '0001', 'a field number of 0 at byte 1'],
    ['has a wire type that is none', '0f', 'wire type 7, which does not begin a field at byte 1'],
    ['has a group that does not end', 'fb0108', 'an end in the middle of a field at byte 3'],
    ['has a group that ends as another', 'fb018402', 'the end of another group at byte 4'],
    ['has the end of no group', '0c', 'wire type 4, which does not begin a field at byte 1'],
    ['has a number of eleven bytes', `18${'80'.repeat(10)}01`, 'a number of more than 10 bytes at byte 11'],
    ['has groups without end', 'fb01'.repeat(200), 'groups nested too deep at byte 202'],
    ['is not UTF-8', '0a02c328', 'text that is not UTF-8 at byte 2'],
    ['is cut inside a character', '0a01e2', 'text that is not UTF-8 at byte 2'],
  ])('that %s is refused, saying where', (_what, bytes, message) => {
    expect(() => decodeRequest(hex(bytes))).toThrow(new WireError(message));
  });

  it('of any bytes is read or refused, and reading ends', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          decodeRequest(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
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

describe('an answer', () => {
  it('is written so that the generated code reads it back', () => {
    fc.assert(
      fc.property(verdict, (answer) => {
        const read = WireResponse.decode(encodeResponse(answer));
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

  it('is byte for byte what the generated code writes', () => {
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
    expect(bytes).toEqual(Buffer.from(WireResponse.encode(WireResponse.decode(bytes)).finish()));
  });
});

import { readFileSync } from 'node:fs';
import { RateLimitResponse as GeneratedResponse } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { decodeRequest } from '../../../src/grpc/rate-limit/decode-request';
import { encodeResponse } from '../../../src/grpc/rate-limit/encode-response';
import type { Limit } from '../../../src/counting/limit';
import { ProtobufError } from '../../../src/grpc/rate-limit/protobuf-reader';
import { MAX_TEXT } from '../../../src/limiter/request';
import { writeVerdict } from '../../../src/http/json/json-handler';
import { structuredHeaders } from '../../../src/limiter/structured-headers';
import { Code, type Verdict, responseHeaders } from '../../../src/limiter/verdict';
import { UNIT_NAMES, type UnitName } from '../../../src/rules/unit';
import fc from '../../support/data/properties';
import { boundLimit } from '../../support/data/rules';
import { heapAfterCollection } from '../../support/processes/collect-garbage';
import { type ParsedRequest, asDecoded, decode } from './parsed-requests';

const text = fc.string({ unit: fc.constantFrom('a', 'k', '\0', '~', 'é', '€', '漢', '😀'), maxLength: 40 });

function hex(digits: string): Buffer {
  return Buffer.from(digits.replaceAll(' ', ''), 'hex');
}
/** The field of these hexadecimal digits, again and again. */
function repeated(field: string, count: number): Buffer {
  return hex(field.repeat(count));
}
/** A field with up to 2 MiB of content, whose tag is `number`. */
function delimited(number: number, content: Buffer): Buffer {
  const { length } = content;
  const varint = [0x80 | (length & 0x7f), 0x80 | ((length >> 7) & 0x7f), length >> 14];
  return Buffer.concat([Buffer.from([number, ...varint]), content]);
}

describe('decodeRequest', () => {
  it.each([
    ['ends in a tag', '80', 'truncated field at byte 1'],
    ['ends in a text', '0a0561', 'length beyond the end of the message at byte 2'],
    ['ends in a number', '1880', 'truncated field at byte 2'],
    ['has a nested message longer than itself', '12020a05', 'length beyond the end of the message at byte 4'],
    ['has field number 0', '0001', 'field number 0 at byte 1'],
    ['has an unknown wire type', '0f', 'invalid wire type 7 at byte 1'],
    ['has a group without an end', 'fb0108', 'truncated field at byte 3'],
    ['has a group that ends with the tag of another', 'fb018402', 'mismatched end of a group at byte 4'],
    ['has a group that ends 2^29 fields later', '0b8c80808010', 'mismatched end of a group at byte 6'],
    ['has a varint of eleven bytes', `18${'80'.repeat(10)}01`, 'varint longer than 10 bytes at byte 11'],
    ['has a varint of more than 64 bits', `18${'80'.repeat(9)}02`, 'varint exceeds 64 bits at byte 11'],
    ['has a tag of more than 64 bits', 'b5cab392adf7a6d0972e0a046e6f70651800', 'varint exceeds 64 bits at byte 10'],
    ['has a field number above 2^29 - 1', '8080808010 00', 'field number too large at byte 5'],
    ['has a length above 2^32', '0a8180808010 61', 'length beyond the end of the message at byte 6'],
    ['has groups nested more than 100 deep', 'fb01'.repeat(200), 'groups nested too deeply at byte 202'],
    ['has a text that is not UTF-8', '0a02c328', 'invalid UTF-8 at byte 2'],
  ])('rejects a request that %s, with the byte offset', (_problem, bytes, message) => {
    expect(() => decodeRequest(hex(bytes))).toThrow(new ProtobufError(message));
  });

  it('counts the descriptors and entries over the maximum, and keeps none of them', () => {
    const { descriptors } = decodeRequest(repeated('12040a020a00', 10_000));
    expect([descriptors.length, new Set(descriptors.slice(1_000)).size]).toEqual([10_000, 1]);
    expect(descriptors[1_000]?.entries).toEqual([]);
    const { entries } = decodeRequest(delimited(0x12, repeated('0a030a016b', 10_000))).descriptors[0]!;
    expect([entries.length, new Set(entries.slice(100)).size]).toEqual([10_000, 1]);
    expect(entries.slice(99, 101).map(({ key }) => key)).toEqual(['k', '']);
  });

  const MANY_FIELDS = 'a message may have at most 65536 fields';
  const limits = delimited(0x12, repeated('1200', 40_000));
  it.each([
    ['10,001 descriptors', repeated('1200', 10_001), 'at most 1000 descriptors, this one has more than 10000'],
    [
      '10,001 entries',
      Buffer.concat([hex('1200'), delimited(0x12, repeated('0a00', 10_001))]),
      'a descriptor may have at most 100 entries, descriptor 2 has more than 10000',
    ],
    ['65,537 domains', repeated('0a00', 65_537), MANY_FIELDS],
    ['65,537 hits', repeated('1801', 65_537), MANY_FIELDS],
    ['65,537 unknown fields', repeated('7800', 65_537), MANY_FIELDS],
    ['65,537 groups', repeated('7b7c', 65_537), MANY_FIELDS],
    ['80,000 fields of nested messages', Buffer.concat([limits, limits]), MANY_FIELDS],
  ])('stops reading at %s', (_what, bytes, message) => {
    // What follows is not valid, and is not read.
    expect(() => decodeRequest(Buffer.concat([bytes, hex('ff')]))).toThrow(message);
  });

  it('decodes texts of as many bytes as the permitted characters can have, and stops at longer ones', () => {
    const domain = '€'.repeat(MAX_TEXT);
    const bytes = delimited(0x0a, Buffer.from(domain));
    expect(decodeRequest(bytes).domain).toBe(domain);
    // What follows is not valid, and is not read.
    const more = Buffer.concat([bytes, delimited(0x0a, Buffer.alloc(25, 'x')), hex('ff')]);
    expect(() => decodeRequest(more)).toThrow('the texts of a message may have at most 786432 bytes');
  });

  it('reads each name from its own bytes, however many it has read before, and keeps no view of them', () => {
    // Far more names than are remembered, each of which is read again after all others.
    const names = Array.from({ length: 5_000 }, (_, at) => {
      return `${String.fromCharCode(33 + (at % 90))}ame-${Math.floor(at / 90)}`;
    });
    const requests = names.map((name) => delimited(0x0a, Buffer.from(name)));
    for (const round of [1, 2]) {
      expect([round, requests.map((bytes) => decodeRequest(bytes).domain)]).toEqual([round, names]);
    }
    const reused = delimited(0x0a, Buffer.from('user'));
    expect(decodeRequest(reused).domain).toBe('user');
    reused.write('path', reused.length - 4);
    expect(decodeRequest(reused).domain).toBe('path');
    expect(decodeRequest(delimited(0x0a, Buffer.from('user'))).domain).toBe('user');
  });
});

it('decodeRequest accepts and rejects the same of 4,000 messages as the protobuf library of Go, with the same results', () => {
  const lines = readFileSync(`${__dirname}/fixtures/parsed-by-go.txt`, 'utf8').trimEnd().split('\n');
  expect(lines).toHaveLength(4_000);
  expect(lines.filter((line) => line.endsWith(' rejected')).length).toBeGreaterThan(1_000);
  for (const line of lines) {
    const [, bytes, result] = /^(\w*) (.*)$/.exec(line)!;
    const parsed = result === 'rejected' ? undefined : asDecoded(JSON.parse(result!) as ParsedRequest);
    expect([bytes, decode(hex(bytes!))]).toEqual([bytes, parsed]);
  }
});

/** A message with it may need two bytes for its length. */
const longText = fc.string({ maxLength: 300, size: 'max' });
const uint32 = fc.oneof(fc.nat(2), fc.nat(300), fc.integer({ min: 0, max: 0xffffffff }));
const code = fc.constantFrom(Code.OK, Code.OVER_LIMIT);
const unit = fc.constantFrom(...(UNIT_NAMES.slice(1) as readonly UnitName[]));
const verdict: fc.Arbitrary<Verdict> = fc.record({
  overallCode: code,
  statuses: fc.array(
    fc.record({
      code,
      currentLimit: fc.option(
        fc
          .tuple(uint32, unit, fc.record({ unitMultiplier: fc.constantFrom(1, 5), name: text }))
          .map((of) => boundLimit(...of)),
        { nil: undefined },
      ),
      limitRemaining: uint32,
      secondsUntilReset: fc.option(fc.nat(31_536_000), { nil: undefined }),
    }),
    { maxLength: 30 },
  ),
  responseHeaders: fc.array(fc.record({ key: text, value: longText }), { maxLength: 3 }),
  dynamicMetadata: fc.option(fc.constant({ domain: 'd', list: [1, 'two', null, { three: true }] }), { nil: undefined }),
});

interface JsonAnswer {
  readonly statuses: readonly {
    readonly currentLimit: { readonly requestsPerUnit: number };
    readonly limitRemaining?: number;
    readonly durationUntilReset: string;
  }[];
  readonly responseHeadersToAdd: readonly { readonly value: string }[];
}

describe('encodeResponse', () => {
  it('encodes a verdict so that the generated code decodes it', () => {
    fc.assert(
      fc.property(verdict, (answer) => {
        expect(GeneratedResponse.decode(encodeResponse(answer))).toEqual({
          ...GeneratedResponse.decode(new Uint8Array()),
          overallCode: answer.overallCode,
          statuses: answer.statuses.map(({ code: statusCode, currentLimit, limitRemaining, secondsUntilReset }) => ({
            code: statusCode,
            currentLimit: currentLimit && {
              requestsPerUnit: currentLimit.requestsPerUnit,
              unit: currentLimit.unit.number,
              name: currentLimit.name,
            },
            limitRemaining,
            durationUntilReset:
              secondsUntilReset === undefined ? undefined : { seconds: BigInt(secondsUntilReset), nanos: 0 },
          })),
          responseHeadersToAdd: answer.responseHeaders.map((header) => ({ ...header, rawValue: Buffer.alloc(0) })),
          dynamicMetadata: answer.dynamicMetadata,
        });
      }),
    );
  });

  it('encodes parts of any length, in a buffer that doubles when a verdict does not fit', () => {
    function lengthsFrom(least: number): readonly number[] {
      return Array.from({ length: 150 }, (_, index) => least + index);
    }
    for (const length of [200_000, ...lengthsFrom(0), ...lengthsFrom(16_300), ...lengthsFrom(399_950)]) {
      const currentLimit = boundLimit(1, 'MINUTE', { name: 'x'.repeat(length) });
      const statuses = [{ code: Code.OK, currentLimit, limitRemaining: 0xffffffff, secondsUntilReset: 0 }];
      const answer = { overallCode: Code.OK, statuses, responseHeaders: [], dynamicMetadata: undefined };
      const [status] = GeneratedResponse.decode(encodeResponse(answer)).statuses;
      const written = [status?.currentLimit?.name.length, status?.limitRemaining, status?.durationUntilReset];
      expect(written).toEqual([length, 0xffffffff, { seconds: 0n, nanos: 0 }]);
    }
  });

  it('writes whole numbers into protobuf, JSON and headers, whatever numbers it is given', () => {
    for (const given of [NaN, Infinity, -Infinity, -1, -1_795_941_636_609, 0.5, 2 ** 53, 2 ** 64, 1e300]) {
      const numbers = { requestsPerUnit: given, capacity: 2 * given, unitMultiplier: given, lengthSeconds: given };
      const currentLimit = Object.assign(boundLimit(1, 'MINUTE', { name: 'n' }), numbers);
      const status = { code: Code.OK, currentLimit, limitRemaining: given, secondsUntilReset: given };
      const headers = [
        ...responseHeaders({ limit: 'l', remaining: 'm', reset: 'r' }, [status], [false], 0),
        ...structuredHeaders([status], given),
      ];
      const answer = {
        ...{ overallCode: Code.OK, statuses: [status], responseHeaders: headers },
        dynamicMetadata: undefined,
      };
      const most = BigInt(Number.MAX_SAFE_INTEGER);
      const onWire = given >= 2 ** 53 ? 0xffffffff : 0;
      const duration = given >= 2 ** 53 ? most : 0n;
      const [decoded] = GeneratedResponse.decode(encodeResponse(answer)).statuses;
      expect(decoded?.durationUntilReset).toEqual({ seconds: duration, nanos: 0 });
      expect([decoded?.limitRemaining, decoded?.currentLimit?.requestsPerUnit]).toEqual([onWire, onWire]);
      const { statuses, responseHeadersToAdd } = JSON.parse(writeVerdict(answer)) as JsonAnswer;
      expect(statuses[0]!.durationUntilReset).toBe(`${duration}s`);
      expect([statuses[0]!.limitRemaining ?? 0, statuses[0]!.currentLimit.requestsPerUnit]).toEqual([onWire, onWire]);
      for (const { value } of responseHeadersToAdd)
        expect(value.replace(/"[^"]*"/g, '')).toMatch(/^(?:\d{1,16}|[;, ]|(?:q|w|r|t|qu|burst|weir-burst)=)*$/);
    }
  });

  it('keeps few bytes for the limit of each rule', () => {
    function keptBytes(): number {
      return heapAfterCollection() + process.memoryUsage().arrayBuffers;
    }
    function limitsOf(count: number) {
      return Array.from({ length: count }, (_, requestsPerUnit) => boundLimit(requestsPerUnit, 'MINUTE'));
    }
    function encodeLimits(limits: readonly Limit[]) {
      for (const currentLimit of limits) {
        const statuses = [{ code: Code.OK, currentLimit, limitRemaining: 1, secondsUntilReset: 60 }];
        encodeResponse({ overallCode: Code.OK, statuses, responseHeaders: [], dynamicMetadata: undefined });
      }
    }
    // What is compiled and grown once is not counted.
    encodeLimits(limitsOf(1_000));
    const limitsOfRules = limitsOf(10_000);
    const before = keptBytes();
    encodeLimits(limitsOfRules);
    // About 450 of V8 itself; the buffer of the writer would be a kilobyte more.
    expect((keptBytes() - before) / limitsOfRules.length).toBeLessThan(700);
    // They are in use until here.
    expect(limitsOfRules).toHaveLength(10_000);
  });
});

import * as fc from 'fast-check';
import { MalformedBody } from '../../../src/http/server/errors';
import { readRequest } from '../../../src/http/json/read-request';
import { type Descriptor, NO_HITS_ADDEND, type RateLimitRequest } from '../../../src/limiter/request';
import { UNIT_NAMES, unitByName, unitByNumber } from '../../../src/rules/unit';

const NO_UNIT = undefined;

/** Reads a request with the descriptor in `json`. */
function descriptor(json: string): Descriptor {
  return readRequest(`{"descriptors":[${json}]}`).descriptors[0]!;
}

describe('a request in proto3 JSON', () => {
  it('is read with all its fields', () => {
    expect(
      readRequest(`{
        "domain": "shop",
        "descriptors": [
          { "entries": [{ "key": "user", "value": "a b" }, { "value": "", "key": "path" }],
            "limit": { "requestsPerUnit": 7, "unit": "HOUR" }, "hitsAddend": "3", "isNegativeHits": true },
          { "entries": [] }
        ],
        "hitsAddend": 2
      }`),
    ).toEqual({
      domain: 'shop',
      descriptors: [
        {
          entries: [
            { key: 'user', value: 'a b' },
            { key: 'path', value: '' },
          ],
          limit: { requestsPerUnit: 7, unit: unitByName('HOUR') },
          hitsAddend: 3,
          isNegativeHits: true,
        },
        { entries: [], limit: undefined, hitsAddend: NO_HITS_ADDEND, isNegativeHits: false },
      ],
      hitsAddend: 2,
    });
  });

  it('may have the field names of the proto', () => {
    const json = '{"limit":{"requests_per_unit":7},"hits_addend":3,"is_negative_hits":true}';
    expect(descriptor(json)).toEqual({
      entries: [],
      limit: { requestsPerUnit: 7, unit: NO_UNIT },
      hitsAddend: 3,
      isNegativeHits: true,
    });
    expect(readRequest('{"hits_addend":4}').hitsAddend).toBe(4);
  });

  it('has defaults for fields that are absent or null', () => {
    const defaults = { domain: '', descriptors: [], hitsAddend: 0 };
    expect(readRequest('{}')).toEqual(defaults);
    expect(readRequest('{"domain":null,"descriptors":null,"hitsAddend":null}')).toEqual(defaults);
    const plain = { entries: [], limit: undefined, hitsAddend: NO_HITS_ADDEND, isNegativeHits: false };
    expect(descriptor('{}')).toEqual(plain);
    expect(descriptor('{"entries":null,"limit":null,"hitsAddend":null,"isNegativeHits":null}')).toEqual(plain);
    expect(descriptor('{"entries":[{"key":null,"value":null}]}').entries).toEqual([{ key: '', value: '' }]);
    expect(descriptor('{"limit":{"requestsPerUnit":null,"unit":null}}').limit).toEqual({
      requestsPerUnit: 0,
      unit: NO_UNIT,
    });
  });

  it('keeps a hits addend of 0, which differs from none', () => {
    expect(descriptor('{"hitsAddend":0}').hitsAddend).toBe(0);
  });

  it.each([
    ['0', 0],
    ['-0', 0],
    ['0.0', 0],
    ['0e99', 0],
    ['5', 5],
    ['5.0', 5],
    ['1e2', 100],
    ['1E+2', 100],
    ['1.5e1', 15],
    ['100e-2', 1],
    ['120.00e-1', 12],
    ['4294967295', 4294967295],
    ['429496729500000000000e-11', 4294967295],
  ])('may have %s for the integer %d, as a number and as a string', (text, value) => {
    expect(readRequest(`{"hitsAddend":${text}}`).hitsAddend).toBe(value);
    expect(readRequest(`{"hitsAddend":"${text}"}`).hitsAddend).toBe(value);
  });

  it.each([
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['9007199254740993', 9007199254740992],
    ['18446744073709551615', 2 ** 64],
  ])('may have a 64-bit hits addend of a descriptor, which is rounded: %s', (text, value) => {
    expect(descriptor(`{"hitsAddend":${text}}`).hitsAddend).toBe(value);
    expect(descriptor(`{"hitsAddend":"${text}"}`).hitsAddend).toBe(value);
  });

  it.each(UNIT_NAMES.map((name, number) => [name, number] as const))(
    'may have the unit %s, also as %i',
    (name, number) => {
      const unit = unitByNumber(number);
      expect(descriptor(`{"limit":{"unit":"${name}"}}`).limit).toEqual({ requestsPerUnit: 0, unit });
      expect(descriptor(`{"limit":{"unit":${number}}}`).limit).toEqual({ requestsPerUnit: 0, unit });
    },
  );

  it.each(['8', '-1', '2147483647', '-2147483648', '1e3'])('may have %s as a unit without a name', (number) => {
    expect(descriptor(`{"limit":{"unit":${number}}}`).limit).toEqual({ requestsPerUnit: 0, unit: NO_UNIT });
  });

  it('may have any text, escaped or not', () => {
    const text = 'a"b\\c/\b\f\n\r\té😀\u2028\u0000\u007f';
    expect(readRequest(JSON.stringify({ domain: text })).domain).toBe(text);
    expect(readRequest('{"domain":"\\u00e9\\ud83d\\ude00\\/é😀"}').domain).toBe('é😀/é😀');
  });

  it('has its descriptors and entries over the maximum counted, and none of them kept', () => {
    const many = `{"descriptors":[${Array.from({ length: 10_000 }, () => '{"entries":[{"key":"k"}]}').join()}]}`;
    const { descriptors } = readRequest(many);
    expect([descriptors.length, new Set(descriptors.slice(1_000)).size]).toEqual([10_000, 1]);
    expect(descriptors[1_000]?.entries).toEqual([]);

    const long = `{"descriptors":[{"entries":[${Array.from({ length: 10_000 }, () => '{"key":"k"}').join()}]}]}`;
    const { entries } = readRequest(long).descriptors[0]!;
    expect([entries.length, new Set(entries.slice(100)).size]).toEqual([10_000, 1]);
  });

  it.each([
    ['descriptors', '[', '{}', 'a request may have at most 1000 descriptors, this one has more than 10000'],
    [
      'entries',
      '[{},{"entries":[',
      '{}',
      'a descriptor may have at most 100 entries, descriptor 2 has more than 10000',
    ],
  ])('is not read beyond 10,000 %s', (_what, begin, item, message) => {
    // What follows is not JSON, and is not read.
    const body = `{"descriptors":${begin}${Array.from({ length: 10_001 }, () => item).join()}oops`;
    expect(() => readRequest(body)).toThrow(message);
  });

  it('may have ten thousand descriptors', () => {
    const json = `{"entries":[{"key":"k","value":"v"}]}`;
    const { descriptors } = readRequest(`{"domain":"d","descriptors":[${Array(10_000).fill(json).join(',\n')}]}`);
    expect(descriptors).toHaveLength(10_000);
  });
});

const UNITS = 'one of UNKNOWN, SECOND, MINUTE, HOUR, DAY, MONTH, YEAR, WEEK';
const UINT32 = 'expected an integer from 0 to 4294967295';

describe('an invalid request', () => {
  it.each([
    ['', '$: expected a RateLimitRequest (an object), got the end of the body (line 1, column 1)'],
    ['  \n ', '$: expected a RateLimitRequest (an object), got the end of the body (line 2, column 2)'],
    ['null', '$: expected a RateLimitRequest (an object), got null (line 1, column 1)'],
    ['[]', '$: expected a RateLimitRequest (an object), got an array (line 1, column 1)'],
    ['"x"', '$: expected a RateLimitRequest (an object), got a string (line 1, column 1)'],
    ['domain=x', '$: expected a RateLimitRequest (an object), got domain=x (line 1, column 1)'],
    ['\ufeff{}', '$: expected a RateLimitRequest (an object), got a byte order mark (line 1, column 1)'],
    ['{', '$: expected a member name in double quotes, got the end of the body (line 1, column 2)'],
    ['{"domain"}', '$: expected ":", got } (line 1, column 10)'],
    ['{"domain":}', '$.domain: expected a string, got } (line 1, column 11)'],
    ['{"domain":"a" "x":1}', '$.domain: expected "," or "}", got a string (line 1, column 15)'],
    ['{"domain":"a",}', '$.domain: expected a member name in double quotes, got } (line 1, column 15)'],
    ["{'domain':'a'}", "$: expected a member name in double quotes, got 'domain' (line 1, column 2)"],
    ['{domain:"a"}', '$: expected a member name in double quotes, got domain (line 1, column 2)'],
    ['{,}', '$: expected a member name in double quotes, got , (line 1, column 2)'],
    ['{} {}', '$: expected the end of the body after the request, got an object (line 1, column 4)'],
    ['{}x', '$: expected the end of the body after the request, got x (line 1, column 3)'],
    ['{"domain":"a', '$.domain: unterminated string'],
    ['{"domain":"a\\', '$.domain: unterminated string'],
    ['{"domain":"a\nb"}', '$.domain: control characters in a string must be escaped'],
    ['{"domain":"\\x41"}', '$.domain: invalid escape sequence in a string'],
    ['{"domain":"\\ud800"}', '$.domain: unpaired surrogate in a string: not valid Unicode'],
    ['{"domain":"\\udc00\\ud800"}', '$.domain: unpaired surrogate in a string: not valid Unicode'],
    ['{"domain":nul}', '$.domain: expected a JSON value, got nul (line 1, column 11)'],
    ['{"domain":1}', '$.domain: expected a string, got 1 (line 1, column 11)'],
    ['{"domain":["a"]}', '$.domain: expected a string, got an array (line 1, column 11)'],
    ['{"domain":true}', '$.domain: expected a string, got true (line 1, column 11)'],
    ['{"domain":"a","domain":"a"}', '$.domain: duplicate field'],
    ['{"domain":null,"domain":"a"}', '$.domain: duplicate field'],
    ['{"domain":"a","dom\\u0061in":"a"}', '$.domain: duplicate field'],
    ['{"hitsAddend":1,"hits_addend":1}', '$.hits_addend: duplicate field'],
    ['{"Domain":"a"}', '$.Domain: unknown field; allowed fields: domain, descriptors, hitsAddend'],
    ['{"":1}', '$[""]: unknown field; allowed fields: domain, descriptors, hitsAddend'],
    ['{"a\\nb":1}', '$["a\\nb"]: unknown field; allowed fields: domain, descriptors, hitsAddend'],
    ['{"__proto__":{}}', '$.__proto__: unknown field; allowed fields: domain, descriptors, hitsAddend'],
    [
      '{"descriptors":{}}',
      '$.descriptors: expected a list of descriptors (an array), got an object (line 1, column 16)',
    ],
    ['{"descriptors":[null]}', '$.descriptors[0]: expected a descriptor (an object), got null (line 1, column 17)'],
    ['{"descriptors":[{},{},5]}', '$.descriptors[2]: expected a descriptor (an object), got 5 (line 1, column 23)'],
    ['{"descriptors":[{},]}', '$.descriptors[1]: expected a descriptor (an object), got ] (line 1, column 20)'],
    ['{"descriptors":[,{}]}', '$.descriptors[0]: expected a descriptor (an object), got , (line 1, column 17)'],
    ['{"descriptors":[{} {}]}', '$.descriptors[0]: expected "," or "]", got an object (line 1, column 20)'],
    ['{"descriptors":[{}', '$.descriptors[0]: expected "," or "]", got the end of the body (line 1, column 19)'],
    [
      '{"descriptors":[{"entires":[]}]}',
      '$.descriptors[0].entires: unknown field; allowed fields: entries, limit, hitsAddend, isNegativeHits',
    ],
    [
      '{"descriptors":[{"entries":[{"key":"a"},\n {"name":"a"}]}]}',
      '$.descriptors[0].entries[1].name: unknown field; allowed fields: key, value',
    ],
    [
      '{"descriptors":[{"entries":[\n{"key":5}]}]}',
      '$.descriptors[0].entries[0].key: expected a string, got 5 (line 2, column 8)',
    ],
    [
      '{"descriptors":[{"entries":[{"key":"a","value":"b","key":"a"}]}]}',
      '$.descriptors[0].entries[0].key: duplicate field',
    ],
    [
      '{"descriptors":[{"limit":5}]}',
      '$.descriptors[0].limit: expected a limit (an object), got 5 (line 1, column 26)',
    ],
    [
      '{"descriptors":[{"limit":{"per":1}}]}',
      '$.descriptors[0].limit.per: unknown field; allowed fields: requestsPerUnit, unit',
    ],
    ['{"descriptors":[{"limit":{"unit":"hour"}}]}', `$.descriptors[0].limit.unit: expected ${UNITS}, got "hour"`],
    ['{"descriptors":[{"limit":{"unit":"3"}}]}', `$.descriptors[0].limit.unit: expected ${UNITS}, got "3"`],
    [
      '{"descriptors":[{"limit":{"unit":1.5}}]}',
      `$.descriptors[0].limit.unit: expected ${UNITS}, or its number, got 1.5`,
    ],
    [
      '{"descriptors":[{"limit":{"unit":2147483648}}]}',
      `$.descriptors[0].limit.unit: expected ${UNITS}, or its number, got 2147483648`,
    ],
    [
      '{"descriptors":[{"isNegativeHits":"true"}]}',
      '$.descriptors[0].isNegativeHits: expected true or false, got a string (line 1, column 35)',
    ],
    [
      '{"descriptors":[{"isNegativeHits":1}]}',
      '$.descriptors[0].isNegativeHits: expected true or false, got 1 (line 1, column 35)',
    ],
    [
      '{"descriptors":[{"isNegativeHits":false,"is_negative_hits":false}]}',
      '$.descriptors[0].is_negative_hits: duplicate field',
    ],
    [
      '{"descriptors":[{"hitsAddend":{"value":1}}]}',
      '$.descriptors[0].hitsAddend: expected an integer from 0 to 18446744073709551615, got an object (line 1, column 31)',
    ],
    [
      '{"descriptors":[{"hitsAddend":18446744073709560000}]}',
      '$.descriptors[0].hitsAddend: expected an integer from 0 to 18446744073709551615, got 18446744073709560000',
    ],
    ['{"hitsAddend":-1}', `$.hitsAddend: ${UINT32}, got -1`],
    ['{"hitsAddend":1.5}', `$.hitsAddend: ${UINT32}, got 1.5`],
    ['{"hitsAddend":1e-1}', `$.hitsAddend: ${UINT32}, got 1e-1`],
    ['{"hitsAddend":0.99999999999999999999}', `$.hitsAddend: ${UINT32}, got 0.99999999999999999999`],
    ['{"hitsAddend":1.00000000000000000001}', `$.hitsAddend: ${UINT32}, got 1.00000000000000000001`],
    ['{"hitsAddend":4294967296}', `$.hitsAddend: ${UINT32}, got 4294967296`],
    ['{"hitsAddend":1e99999999999999999999999}', `$.hitsAddend: ${UINT32}, got 1e99999999999999999999999`],
    ['{"hitsAddend":""}', `$.hitsAddend: ${UINT32}, got ""`],
    ['{"hitsAddend":" 1"}', `$.hitsAddend: ${UINT32}, got " 1"`],
    ['{"hitsAddend":"1 "}', `$.hitsAddend: ${UINT32}, got "1 "`],
    ['{"hitsAddend":"+1"}', `$.hitsAddend: ${UINT32}, got "+1"`],
    ['{"hitsAddend":"01"}', `$.hitsAddend: ${UINT32}, got "01"`],
    ['{"hitsAddend":"0x1"}', `$.hitsAddend: ${UINT32}, got "0x1"`],
    ['{"hitsAddend":"NaN"}', `$.hitsAddend: ${UINT32}, got "NaN"`],
    ['{"hitsAddend":true}', `$.hitsAddend: ${UINT32}, got true (line 1, column 15)`],
    ['{"hitsAddend":NaN}', `$.hitsAddend: ${UINT32}, got NaN (line 1, column 15)`],
    ['{"hitsAddend":.5}', `$.hitsAddend: ${UINT32}, got .5 (line 1, column 15)`],
    ['{"hitsAddend":01}', '$.hitsAddend: expected "," or "}", got 1 (line 1, column 16)'],
  ])('is rejected with its location and what is expected: %j', (body, message) => {
    expect(() => readRequest(body)).toThrow(new MalformedBody(message));
  });

  it('is rejected with only the beginning of a long text in the message', () => {
    expect(() => readRequest(`{"${'x'.repeat(100_000)}":1}`)).toThrow(
      `$.${'x'.repeat(40)}…: unknown field; allowed fields: domain, descriptors, hitsAddend`,
    );
  });

  // Each takes half an hour in quadratic time.
  it.each([
    ['{"hitsAddend":1', '1}', UINT32],
    ['{"hitsAddend":"1', '1"}', UINT32],
    ['{"hitsAddend":1.', '1}', UINT32],
    ['{"descriptors":[{"hitsAddend":1', '1}]}', 'expected an integer from 0 to 18446744073709551615'],
    ['{"descriptors":[{"limit":{"unit":1', '1}}]}', 'expected one of UNKNOWN'],
  ])('is rejected in linear time for a number of a million digits: %s000…%s', (begin, end, expected) => {
    expect(() => readRequest(`${begin}${'0'.repeat(1_000_000)}${end}`)).toThrow(expected);
  });

  it('is rejected at an unknown field without reading its value', () => {
    expect(() => readRequest(`{"x":${'['.repeat(1_000_000)}`)).toThrow('$.x: unknown field');
  });
});

/** Whether the text is accepted. MalformedBody is the only error that may be thrown. */
function accepts(text: string): boolean {
  try {
    readRequest(text);
    return true;
  } catch (error) {
    if (error instanceof MalformedBody) return false;
    throw error;
  }
}

describe('any request', () => {
  const anyDescriptor = fc.record({
    entries: fc.array(fc.record({ key: fc.string({ unit: 'grapheme' }), value: fc.string({ unit: 'binary' }) }), {
      maxLength: 3,
    }),
    limit: fc.option(
      fc.record({
        requestsPerUnit: fc.nat(),
        unit: fc.integer({ min: 1, max: 7 }).map((number) => unitByNumber(number)!),
      }),
      { nil: undefined },
    ),
    hitsAddend: fc.oneof(fc.constant(NO_HITS_ADDEND), fc.maxSafeNat()),
    isNegativeHits: fc.boolean(),
  });
  const anyRequest: fc.Arbitrary<RateLimitRequest> = fc.record({
    domain: fc.string({ unit: 'grapheme' }),
    descriptors: fc.array(anyDescriptor, { maxLength: 3 }),
    hitsAddend: fc.nat(),
  });

  function toJson(request: RateLimitRequest, indent: number) {
    return JSON.stringify(
      {
        ...request,
        descriptors: request.descriptors.map(({ hitsAddend, limit, ...rest }) => ({
          ...rest,
          limit: limit === undefined ? null : { ...limit, unit: limit.unit?.name },
          hitsAddend: hitsAddend === NO_HITS_ADDEND ? null : String(hitsAddend),
        })),
      },
      null,
      indent,
    );
  }

  it('is read back from its JSON', () => {
    fc.assert(
      fc.property(anyRequest, fc.nat(3), (request, indent) => {
        expect(readRequest(toJson(request, indent))).toEqual(request);
      }),
    );
  });

  it('is accepted after a mutation only if it is still JSON', () => {
    fc.assert(
      fc.property(anyRequest, fc.nat(), fc.nat(4), fc.string({ maxLength: 3 }), (request, where, cut, inserted) => {
        const json = toJson(request, 0);
        const at = where % json.length;
        const mutated = json.slice(0, at) + inserted + json.slice(at + cut);
        fc.pre(accepts(mutated));
        expect(() => void JSON.parse(mutated)).not.toThrow();
      }),
      { numRuns: 300, maxSkipsPerRun: 1_000 },
    );
  });
});

import * as fc from 'fast-check';
import { MalformedBody } from '../../../src/http/server/errors';
import { readRequest } from '../../../src/http/json/read-request';
import { type Descriptor, NO_HITS_ADDEND, type RateLimitRequest } from '../../../src/limiter/request';
import { UNIT_NAMES, unitByName, unitByNumber } from '../../../src/rules/unit';

const NO_UNIT = undefined;

/** What the descriptor in `json` is read as. */
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

  it('may name its fields as the proto does', () => {
    const json = '{"limit":{"requests_per_unit":7},"hits_addend":3,"is_negative_hits":true}';
    expect(descriptor(json)).toEqual({
      entries: [],
      limit: { requestsPerUnit: 7, unit: NO_UNIT },
      hitsAddend: 3,
      isNegativeHits: true,
    });
    expect(readRequest('{"hits_addend":4}').hitsAddend).toBe(4);
  });

  it('has defaults for what is absent or null', () => {
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

  it('tells hits of 0 from none', () => {
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
  ])('takes %s as the whole number %d, as a number and as text', (text, value) => {
    expect(readRequest(`{"hitsAddend":${text}}`).hitsAddend).toBe(value);
    expect(readRequest(`{"hitsAddend":"${text}"}`).hitsAddend).toBe(value);
  });

  it.each([
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['9007199254740993', 9007199254740992],
    ['18446744073709551615', 2 ** 64],
  ])('takes hits of a descriptor up to 64 bits, rounded: %s', (text, value) => {
    expect(descriptor(`{"hitsAddend":${text}}`).hitsAddend).toBe(value);
    expect(descriptor(`{"hitsAddend":"${text}"}`).hitsAddend).toBe(value);
  });

  it.each(UNIT_NAMES.map((name, number) => [name, number] as const))(
    'knows the unit %s, also as %i',
    (name, number) => {
      const unit = unitByNumber(number);
      expect(descriptor(`{"limit":{"unit":"${name}"}}`).limit).toEqual({ requestsPerUnit: 0, unit });
      expect(descriptor(`{"limit":{"unit":${number}}}`).limit).toEqual({ requestsPerUnit: 0, unit });
    },
  );

  it.each(['8', '-1', '2147483647', '-2147483648', '1e3'])('takes %s as a unit that has no name', (number) => {
    expect(descriptor(`{"limit":{"unit":${number}}}`).limit).toEqual({ requestsPerUnit: 0, unit: NO_UNIT });
  });

  it('may hold any text, escaped or not', () => {
    const text = 'a"b\\c/\b\f\n\r\té😀\u2028\u0000\u007f';
    expect(readRequest(JSON.stringify({ domain: text })).domain).toBe(text);
    expect(readRequest('{"domain":"\\u00e9\\ud83d\\ude00\\/é😀"}').domain).toBe('é😀/é😀');
  });

  it('may hold ten thousand descriptors', () => {
    const json = `{"entries":[{"key":"k","value":"v"}]}`;
    const { descriptors } = readRequest(`{"domain":"d","descriptors":[${Array(10_000).fill(json).join(',\n')}]}`);
    expect(descriptors).toHaveLength(10_000);
  });
});

const UNITS = 'one of UNKNOWN, SECOND, MINUTE, HOUR, DAY, MONTH, YEAR, WEEK';
const UINT32 = 'a whole number from 0 to 4294967295 expected';

describe('a body that is no such request is refused, saying where and what is allowed', () => {
  it.each([
    ['', '$: a RateLimitRequest (an object) expected, got the end of the body (line 1, column 1)'],
    ['  \n ', '$: a RateLimitRequest (an object) expected, got the end of the body (line 2, column 2)'],
    ['null', '$: a RateLimitRequest (an object) expected, got null (line 1, column 1)'],
    ['[]', '$: a RateLimitRequest (an object) expected, got an array (line 1, column 1)'],
    ['"x"', '$: a RateLimitRequest (an object) expected, got a string (line 1, column 1)'],
    ['domain=x', '$: a RateLimitRequest (an object) expected, got domain=x (line 1, column 1)'],
    ['\ufeff{}', '$: a RateLimitRequest (an object) expected, got a byte order mark (line 1, column 1)'],
    ['{', '$: a member name in double quotes expected, got the end of the body (line 1, column 2)'],
    ['{"domain"}', '$: ":" expected, got } (line 1, column 10)'],
    ['{"domain":}', '$.domain: a string expected, got } (line 1, column 11)'],
    ['{"domain":"a" "x":1}', '$.domain: "," or "}" expected, got a string (line 1, column 15)'],
    ['{"domain":"a",}', '$.domain: a member name in double quotes expected, got } (line 1, column 15)'],
    ["{'domain':'a'}", "$: a member name in double quotes expected, got 'domain' (line 1, column 2)"],
    ['{domain:"a"}', '$: a member name in double quotes expected, got domain (line 1, column 2)'],
    ['{,}', '$: a member name in double quotes expected, got , (line 1, column 2)'],
    ['{} {}', '$: nothing expected after the end of the request, got an object (line 1, column 4)'],
    ['{}x', '$: nothing expected after the end of the request, got x (line 1, column 3)'],
    ['{"domain":"a', '$.domain: a string without an end'],
    ['{"domain":"a\\', '$.domain: a string without an end'],
    ['{"domain":"a\nb"}', '$.domain: a control character in a string must be escaped'],
    ['{"domain":"\\x41"}', '$.domain: a string with an escape that JSON does not have'],
    ['{"domain":"\\ud800"}', '$.domain: a string with half a surrogate pair, which is no Unicode text'],
    ['{"domain":"\\udc00\\ud800"}', '$.domain: a string with half a surrogate pair, which is no Unicode text'],
    ['{"domain":nul}', '$.domain: a JSON value expected, got nul (line 1, column 11)'],
    ['{"domain":1}', '$.domain: a string expected, got 1 (line 1, column 11)'],
    ['{"domain":["a"]}', '$.domain: a string expected, got an array (line 1, column 11)'],
    ['{"domain":true}', '$.domain: a string expected, got true (line 1, column 11)'],
    ['{"domain":"a","domain":"a"}', '$.domain: this field is given twice'],
    ['{"domain":null,"domain":"a"}', '$.domain: this field is given twice'],
    ['{"domain":"a","dom\\u0061in":"a"}', '$.domain: this field is given twice'],
    ['{"hitsAddend":1,"hits_addend":1}', '$.hits_addend: this field is given twice'],
    ['{"Domain":"a"}', '$.Domain: unknown field; known here are domain, descriptors, hitsAddend'],
    ['{"":1}', '$[""]: unknown field; known here are domain, descriptors, hitsAddend'],
    ['{"a\\nb":1}', '$["a\\nb"]: unknown field; known here are domain, descriptors, hitsAddend'],
    ['{"__proto__":{}}', '$.__proto__: unknown field; known here are domain, descriptors, hitsAddend'],
    [
      '{"descriptors":{}}',
      '$.descriptors: a list of descriptors (an array) expected, got an object (line 1, column 16)',
    ],
    ['{"descriptors":[null]}', '$.descriptors[0]: a descriptor (an object) expected, got null (line 1, column 17)'],
    ['{"descriptors":[{},{},5]}', '$.descriptors[2]: a descriptor (an object) expected, got 5 (line 1, column 23)'],
    ['{"descriptors":[{},]}', '$.descriptors[1]: a descriptor (an object) expected, got ] (line 1, column 20)'],
    ['{"descriptors":[,{}]}', '$.descriptors[0]: a descriptor (an object) expected, got , (line 1, column 17)'],
    ['{"descriptors":[{} {}]}', '$.descriptors[0]: "," or "]" expected, got an object (line 1, column 20)'],
    ['{"descriptors":[{}', '$.descriptors[0]: "," or "]" expected, got the end of the body (line 1, column 19)'],
    [
      '{"descriptors":[{"entires":[]}]}',
      '$.descriptors[0].entires: unknown field; known here are entries, limit, hitsAddend, isNegativeHits',
    ],
    [
      '{"descriptors":[{"entries":[{"key":"a"},\n {"name":"a"}]}]}',
      '$.descriptors[0].entries[1].name: unknown field; known here are key, value',
    ],
    [
      '{"descriptors":[{"entries":[\n{"key":5}]}]}',
      '$.descriptors[0].entries[0].key: a string expected, got 5 (line 2, column 8)',
    ],
    [
      '{"descriptors":[{"entries":[{"key":"a","value":"b","key":"a"}]}]}',
      '$.descriptors[0].entries[0].key: this field is given twice',
    ],
    [
      '{"descriptors":[{"limit":5}]}',
      '$.descriptors[0].limit: a limit (an object) expected, got 5 (line 1, column 26)',
    ],
    [
      '{"descriptors":[{"limit":{"per":1}}]}',
      '$.descriptors[0].limit.per: unknown field; known here are requestsPerUnit, unit',
    ],
    ['{"descriptors":[{"limit":{"unit":"hour"}}]}', `$.descriptors[0].limit.unit: ${UNITS} expected, got "hour"`],
    ['{"descriptors":[{"limit":{"unit":"3"}}]}', `$.descriptors[0].limit.unit: ${UNITS} expected, got "3"`],
    [
      '{"descriptors":[{"limit":{"unit":1.5}}]}',
      `$.descriptors[0].limit.unit: ${UNITS}, or its number expected, got 1.5`,
    ],
    [
      '{"descriptors":[{"limit":{"unit":2147483648}}]}',
      `$.descriptors[0].limit.unit: ${UNITS}, or its number expected, got 2147483648`,
    ],
    [
      '{"descriptors":[{"isNegativeHits":"true"}]}',
      '$.descriptors[0].isNegativeHits: true or false expected, got a string (line 1, column 35)',
    ],
    [
      '{"descriptors":[{"isNegativeHits":1}]}',
      '$.descriptors[0].isNegativeHits: true or false expected, got 1 (line 1, column 35)',
    ],
    [
      '{"descriptors":[{"isNegativeHits":false,"is_negative_hits":false}]}',
      '$.descriptors[0].is_negative_hits: this field is given twice',
    ],
    [
      '{"descriptors":[{"hitsAddend":{"value":1}}]}',
      '$.descriptors[0].hitsAddend: a whole number from 0 to 18446744073709551615 expected, got an object (line 1, column 31)',
    ],
    [
      '{"descriptors":[{"hitsAddend":18446744073709560000}]}',
      '$.descriptors[0].hitsAddend: a whole number from 0 to 18446744073709551615 expected, got 18446744073709560000',
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
    ['{"hitsAddend":01}', '$.hitsAddend: "," or "}" expected, got 1 (line 1, column 16)'],
  ])('%s', (body, message) => {
    expect(() => readRequest(body)).toThrow(new MalformedBody(message));
  });

  it('and repeats only the beginning of a long text', () => {
    expect(() => readRequest(`{"${'x'.repeat(100_000)}":1}`)).toThrow(
      `$.${'x'.repeat(40)}…: unknown field; known here are domain, descriptors, hitsAddend`,
    );
  });

  it('without going down into what it does not know', () => {
    expect(() => readRequest(`{"x":${'['.repeat(1_000_000)}`)).toThrow('$.x: unknown field');
  });
});

/** Whether the reader takes the text; it may refuse it in one way only. */
function accepts(text: string): boolean {
  try {
    readRequest(text);
    return true;
  } catch (error) {
    if (error instanceof MalformedBody) return false;
    throw error;
  }
}

describe('whatever the request', () => {
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

  it('reads it back from its JSON', () => {
    fc.assert(
      fc.property(anyRequest, fc.nat(3), (request, indent) => {
        expect(readRequest(toJson(request, indent))).toEqual(request);
      }),
    );
  });

  it('accepts of its mutations only what is JSON', () => {
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

import { MalformedBody } from '../../../src/http/errors';
import { readRequest } from '../../../src/http/json/read-request';

const UNITS = 'one of UNKNOWN, SECOND, MINUTE, HOUR, DAY, MONTH, YEAR, WEEK';
const UINT32 = '$.hitsAddend: expected an integer from 0 to 4294967295, got';
const UINT64 = '$.descriptors[0].hitsAddend: expected an integer from 0 to 18446744073709551615, got';
const MEMBER = 'expected a member name in double quotes, got';
const REQUEST = '$: expected a RateLimitRequest (an object), got';
const LIMIT = '$.descriptors[0].limit';
const UNKNOWN = 'unknown field; allowed fields: domain, descriptors, hitsAddend';
const SURROGATE = 'unpaired surrogate in a string: not valid Unicode';
const END = 'the end of the body';

/** Bodies and the whole message of their error. */
const INVALID: readonly (readonly [body: string, message: string])[] = [
  ['', `${REQUEST} ${END} (line 1, column 1)`],
  ['null', `${REQUEST} null (line 1, column 1)`],
  ['\ufeff{}', `${REQUEST} a byte order mark (line 1, column 1)`],
  ['{', `$: ${MEMBER} ${END} (line 1, column 2)`],
  ['{"domain"}', '$: expected ":", got } (line 1, column 10)'],
  ['{"domain":}', '$.domain: expected a string, got } (line 1, column 11)'],
  ['{"domain":"a" "x":1}', '$.domain: expected "," or "}", got a string (line 1, column 15)'],
  ['{"domain":"a",}', `$.domain: ${MEMBER} } (line 1, column 15)`],
  ["{'domain':'a'}", `$: ${MEMBER} 'domain' (line 1, column 2)`],
  ['{} {}', '$: expected the end of the body after the request, got an object (line 1, column 4)'],
  ['{"domain":"a', '$.domain: unterminated string'],
  ['{"domain":"a\nb"}', '$.domain: control characters in a string must be escaped'],
  ['{"domain":"\\x41"}', '$.domain: invalid escape sequence in a string'],
  ['{"domain":"\\udc00\\ud800"}', `$.domain: ${SURROGATE}`],
  ['{"domain":nul}', '$.domain: expected a JSON value, got nul (line 1, column 11)'],
  ['{"domain":1}', '$.domain: expected a string, got 1 (line 1, column 11)'],
  ['{"domain":null,"domain":"a"}', '$.domain: duplicate field'],
  ['{"domain":"a","dom\\u0061in":"a"}', '$.domain: duplicate field'],
  ['{"hitsAddend":1,"hits_addend":1}', '$.hits_addend: duplicate field'],
  ['{"Domain":"a"}', `$.Domain: ${UNKNOWN}`],
  ['{"a\\nb":1}', `$["a\\nb"]: ${UNKNOWN}`],
  ['{"__proto__":{}}', `$.__proto__: ${UNKNOWN}`],
  ['{"descriptors":{}}', '$.descriptors: expected a list of descriptors (an array), got an object (line 1, column 16)'],
  ['{"descriptors":[null]}', '$.descriptors[0]: expected a descriptor (an object), got null (line 1, column 17)'],
  ['{"descriptors":[{} {}]}', '$.descriptors[0]: expected "," or "]", got an object (line 1, column 20)'],
  [
    '{"descriptors":[{"entries":[{"key":"a"},\n {"name":"a"}]}]}',
    '$.descriptors[0].entries[1].name: unknown field; allowed fields: key, value',
  ],
  [
    '{"descriptors":[{"entries":[\n{"key":5}]}]}',
    '$.descriptors[0].entries[0].key: expected a string, got 5 (line 2, column 8)',
  ],
  ['{"descriptors":[{"limit":5}]}', '$.descriptors[0].limit: expected a limit (an object), got 5 (line 1, column 26)'],
  ['{"descriptors":[{"limit":{"x":3}}]}', `${LIMIT}.x: unknown field; allowed fields: requestsPerUnit, unit`],
  ['{"descriptors":[{"limit":{"unit":"3"}}]}', `${LIMIT}.unit: expected ${UNITS}, got "3"`],
  ['{"descriptors":[{"limit":{"unit":1.5}}]}', `${LIMIT}.unit: expected ${UNITS}, or its number, got 1.5`],
  [
    '{"descriptors":[{"isNegativeHits":"true"}]}',
    '$.descriptors[0].isNegativeHits: expected true or false, got a string (line 1, column 35)',
  ],
  ['{"descriptors":[{"hitsAddend":{"value":1}}]}', `${UINT64} an object (line 1, column 31)`],
  ['{"descriptors":[{"hitsAddend":18446744073709560000}]}', `${UINT64} 18446744073709560000`],
  ['{"hitsAddend":NaN}', `${UINT32} NaN (line 1, column 15)`],
  ['{"hitsAddend":01}', '$.hitsAddend: expected "," or "}", got 1 (line 1, column 16)'],
];

const NO_INTEGERS = ['-1', '1.5', '1e-1', '1.00000000000000000001', '4294967296', `1e${'9'.repeat(23)}`];
const NO_INTEGER_TEXTS = ['""', '" 1"', '"1 "', '"+1"', '"01"', '"0x1"', '"NaN"'];

describe('an invalid request', () => {
  it.each(INVALID)('is rejected with its location and what is expected: %s', (body, message) => {
    expect(() => readRequest(body)).toThrow(new MalformedBody(message));
  });

  it('is rejected with only the beginning of a long text, and without reading the value of an unknown field', () => {
    expect(() => readRequest(`{"${'x'.repeat(100_000)}":1}`)).toThrow(`$.${'x'.repeat(40)}…: ${UNKNOWN}`);
    expect(() => readRequest(`{"x":${'['.repeat(1_000_000)}`)).toThrow(`$.x: ${UNKNOWN}`);
  });

  it.each([...NO_INTEGERS, ...NO_INTEGER_TEXTS])('is rejected with %s for an integer', (hits) => {
    expect(() => readRequest(`{"hitsAddend":${hits}}`)).toThrow(new MalformedBody(`${UINT32} ${hits}`));
  });

  // Each takes half an hour in quadratic time.
  it.each([
    ['{"hitsAddend":1', '1}', UINT32],
    ['{"hitsAddend":"1', '1"}', UINT32],
    ['{"hitsAddend":1.', '1}', UINT32],
    ['{"descriptors":[{"hitsAddend":1', '1}]}', UINT64],
    ['{"descriptors":[{"limit":{"unit":1', '1}}]}', `expected ${UNITS}`],
  ])('is rejected in linear time for a number of a million digits: %s000…%s', (begin, end, expected) => {
    expect(() => readRequest(`${begin}${'0'.repeat(1_000_000)}${end}`)).toThrow(expected);
  });

  it.each([
    ['[', 'a request may have at most 1000 descriptors, this one has more than 10000'],
    ['[{},{"entries":[', 'a descriptor may have at most 100 entries, descriptor 2 has more than 10000'],
  ])('is not read beyond 10,000 items of a list: %s', (begin, message) => {
    // What follows is not JSON, and is not read.
    expect(() => readRequest(`{"descriptors":${begin}${Array(10_001).fill('{}').join()}oops`)).toThrow(message);
  });
});

it('descriptors and entries over the maximum are counted, and none of them is kept', () => {
  const many = `{"descriptors":[${Array(10_000).fill('{"entries":[{"key":"k"}]}').join(',\n')}]}`;
  const { descriptors } = readRequest(many);
  expect([descriptors.length, new Set(descriptors.slice(1_000)).size]).toEqual([10_000, 1]);
  expect(descriptors[1_000]?.entries).toEqual([]);
  const long = `{"descriptors":[{"entries":[${Array(10_000).fill('{"key":"k"}').join()}]}]}`;
  const { entries } = readRequest(long).descriptors[0]!;
  expect([entries.length, new Set(entries.slice(100)).size]).toEqual([10_000, 1]);
});

import * as fc from 'fast-check';
import {
  duration,
  formatDuration,
  parseNanoseconds,
  pauseDuration,
  timerDuration,
} from '../../src/settings/values/duration';
import { readSettings } from '../../src/settings/read-settings';
import { parseValue } from './parse-value';

const SECOND = 10n ** 9n;
const UNITS: readonly (readonly [string, bigint])[] = [
  ['ns', 1n],
  ['us', 1000n],
  ['\u00b5s', 1000n],
  ['\u03bcs', 1000n],
  ['ms', 10n ** 6n],
  ['s', SECOND],
  ['m', 60n * SECOND],
  ['h', 3600n * SECOND],
];

describe('duration', () => {
  test.each([
    ['150us', 0.15],
    ['150\u00b5s', 0.15],
    ['150\u03bcs', 0.15],
    ['500ms', 500],
    ['1m30s', 90_000],
    ['1h15m30.5s', 4_530_500],
    ['1h1h', 7_200_000],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['1.s', 1000],
    ['+3s', 3000],
    ['1ns', 1e-6],
    ['0.9ns', 0],
    ['0', 0],
    ['+0', 0],
    ['-0', 0],
    ['0s', 0],
    ['-0s', 0],
  ])('parses %s as %d milliseconds', (text, milliseconds) => {
    expect(parseValue(duration('0 or more'), text)).toBe(milliseconds);
  });

  test.each([
    '10',
    '1.5',
    's',
    '.s',
    '1',
    '1d',
    '1w',
    '1S',
    '1 s',
    '1s ',
    '1e3s',
    '1_0s',
    '1mss',
    '--1s',
    '1s-1s',
    '1.2.3s',
    '',
  ])('rejects %j', (text) => {
    expect(parseValue(duration('0 or more'), text)).toBe('rejected');
  });

  test('accepts the range of nanoseconds that Go can represent, and no more', () => {
    expect(parseNanoseconds('9223372036854775807ns')).toBe(2n ** 63n - 1n);
    expect(parseNanoseconds('-9223372036854775808ns')).toBe(-(2n ** 63n));
    expect(parseNanoseconds('9223372036854775808ns')).toBeUndefined();
    expect(parseNanoseconds('9223372037s')).toBeUndefined();
    expect(parseNanoseconds('2562047h')).toBeDefined();
    expect(parseNanoseconds('2562047h48m')).toBeUndefined();
  });

  test('rejects negative durations', () => {
    expect(parseValue(duration('0 or more'), '-1s')).toBe('rejected');
  });

  test('rejects more than an hour if it may be at most that', () => {
    expect(parseValue(duration('0 to 1h'), '1h')).toBe(3_600_000);
    expect(parseValue(duration('0 to 1h'), '0')).toBe(0);
    expect(parseValue(duration('0 to 1h'), '1h1ns')).toBe('rejected');
  });

  test('rejects zero if it must be above 0', () => {
    expect(parseValue(duration('above 0'), '0')).toBe('rejected');
    expect(parseValue(duration('above 0'), '0.1ns')).toBe('rejected');
    expect(parseValue(duration('above 0'), '1ns')).toBe(1e-6);
  });

  test.each([
    ['10', 'add a unit, as in 500ms or 10s'],
    ['2d', 'the largest unit is h: write 1 day as 24h'],
    ['soon', 'write it like 150us, 10s or 1h30m, at most 292 years'],
  ])('rejects %j with a hint', (text, hint) => {
    expect(duration('0 or more').parse(text)).toEqual({ rejected: true, hint });
  });

  test.each([
    [0, '0'],
    [0.15, '150us'],
    [1.5, '1ms500us'],
    [90_000, '1m30s'],
    [86_400_000, '24h'],
    [-1000, '-1s'],
  ])('formats %d milliseconds as %s', (milliseconds, text) => {
    expect(formatDuration(milliseconds)).toBe(text);
  });

  test('parses what it formats to the same duration', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 50n), max: 2n ** 50n }), (nanoseconds) => {
        expect(parseNanoseconds(formatDuration(Number(nanoseconds) / 1e6))).toBe(nanoseconds);
      }),
    );
  });

  test('adds up the parts, in any order and with any unit', () => {
    const part = fc.record({
      count: fc.bigInt({ min: 0n, max: 10_000n }),
      unit: fc.constantFrom(...UNITS),
    });
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), (parts) => {
        const text = parts.map(({ count, unit: [name] }) => `${count}${name}`).join('');
        const sum = parts.reduce((total, { count, unit: [, length] }) => total + count * length, 0n);
        expect(parseNanoseconds(text)).toBe(sum);
      }),
    );
  });
});

describe('a duration for a timer', () => {
  it('is at most what a timer can measure', () => {
    const longest = 2 ** 31 - 1;
    expect(timerDuration('0 or more').parse('596h')).toEqual({ value: 596 * 3_600_000 });
    expect(timerDuration('above 0').parse('720h')).toEqual({
      value: longest,
      notice: expect.stringContaining('24.8 days'),
    });
    expect(timerDuration('above 0').parse('0')).toEqual({ rejected: true });
  });
});

test('a duration between two attempts has a minimum, which replaces what is shorter', () => {
  const type = pauseDuration(100);
  expect(['0', '1ns', '99ms', '100ms', '101ms'].map((text) => type.parse(text))).toEqual(
    [100, 100, 100, 100, 101].map((value) => ({ value })),
  );
  expect(type.parse('-1s')).toEqual({ rejected: true });
});

test('an interval of 0 leaves a pause before the next stream to an xDS server', () => {
  const { settings } = readSettings({ CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '0' });
  expect(settings.configGrpcXdsServerConnectRetryInterval).toBe(100);
});

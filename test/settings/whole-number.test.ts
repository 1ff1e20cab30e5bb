import * as fc from 'fast-check';
import { parseWholeNumber, port, wholeNumber } from '../../src/settings/values/numbers';
import { parseValue } from './parse-value';

describe('parseWholeNumber and wholeNumber', () => {
  test.each([
    ['0', 0n],
    ['8080', 8080n],
    ['+8080', 8080n],
    ['-1', -1n],
    ['8_080', 8080n],
    ['0x1f90', 8080n],
    ['0X1F90', 8080n],
    ['0x_1f_90', 8080n],
    ['0b101', 5n],
    ['0o17', 15n],
    ['017', 15n],
    ['0_17', 15n],
    ['00', 0n],
    ['-0x10', -16n],
    ['9223372036854775808', 9223372036854775808n],
  ])('parse %s as %d, like Go', (text, number) => {
    expect(parseWholeNumber(text)).toBe(number);
  });

  test.each([
    '',
    '-',
    '8080.0',
    '1e3',
    '08',
    '0x',
    '0b2',
    '_1',
    '1_',
    '1__0',
    '0x1__0',
    '1 0',
    '٣',
    'ten',
    '--1',
    '0xg',
  ])('reject %j, like Go', (text) => {
    expect(parseWholeNumber(text)).toBeUndefined();
  });

  test('accept the numbers of an inclusive range', () => {
    const type = wholeNumber({ min: 1, max: 10 });
    expect(['0', '1', '10', '11'].map((text) => parseValue(type, text))).toEqual(['rejected', 1, 10, 'rejected']);
  });

  test('reject numbers that a double cannot represent exactly', () => {
    const type = wholeNumber({ min: 0 });
    expect(parseValue(type, '9007199254740991')).toBe(Number.MAX_SAFE_INTEGER);
    expect(parseValue(type, '9007199254740992')).toBe('rejected');
  });

  test('reject a number with a leading 0 that is not octal, with a hint', () => {
    expect(wholeNumber({ min: 0 }).parse('089')).toEqual({ rejected: true, hint: 'a leading 0 means octal' });
  });

  test('parse a number from every base to the same value', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 63n }), (number) => {
        for (const text of [
          `${number}`,
          `0x${number.toString(16)}`,
          `0b${number.toString(2)}`,
          `0o${number.toString(8)}`,
          `0${number.toString(8)}`,
        ]) {
          expect(parseWholeNumber(text)).toBe(number);
          expect(parseWholeNumber(`-${text}`)).toBe(-number);
        }
      }),
    );
  });

  test('accept one "_" between any two digits', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 2n ** 63n }), (number) => {
        expect(parseWholeNumber(number.toString().split('').join('_'))).toBe(number);
      }),
    );
  });
});

describe('port', () => {
  test('accepts whole numbers from 0 to 65535', () => {
    expect(['0', '65535', '65536', '-1'].map((text) => parseValue(port, text))).toEqual([
      0,
      65535,
      'rejected',
      'rejected',
    ]);
  });

  test('rejects the value of a Kubernetes service link, with a hint that explains it', () => {
    expect(port.parse('tcp://10.0.0.1:8125')).toEqual({
      rejected: true,
      hint: expect.stringContaining('Kubernetes service link'),
    });
  });
});

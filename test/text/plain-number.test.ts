import { fixedNumber, plainNumber } from '../../src/text/plain-number';

describe('plainNumber', () => {
  it.each([
    [0, '0'],
    [0.25, '0.25'],
    [-3, '-3'],
    [2 ** 53 - 1, '9007199254740991'],
    [999_999_999_999_999_900_000, '999999999999999900000'],
    [1e21, '1000000000000000000000'],
    [-1e22, '-10000000000000000000000'],
    [2 ** 100, '1267650600228229401496703205376'],
    [Number.NaN, 'NaN'],
    [Infinity, 'Infinity'],
  ])('writes %d without an exponent', (value, text) => {
    expect(plainNumber(value)).toBe(text);
  });
});

describe('fixedNumber', () => {
  it.each([
    [3, '3.000000'],
    [0.25, '0.250000'],
    [1e21, '1000000000000000000000.000000'],
    [Number.NaN, 'NaN'],
  ])('writes %d with the digits after the point and without an exponent', (value, text) => {
    expect(fixedNumber(value, 6)).toBe(text);
  });
});

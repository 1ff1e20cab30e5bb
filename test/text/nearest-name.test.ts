import { nearestName } from '../../src/rules/files/nearest-name';

describe('the nearest name', () => {
  const names = ['key', 'value', 'rate_limit', 'requests_per_unit', 'unlimited', 'shadow_mode'];
  it.each([
    ['vale', 'value'],
    ['valeu', 'value'],
    ['Value', 'value'],
    ['VALUES', 'value'],
    ['rateLimit', 'rate_limit'],
    ['rate-limit', 'rate_limit'],
    ['rate limits', 'rate_limit'],
    ['request_per_unit', 'requests_per_unit'],
    ['requestsPerUnit', 'requests_per_unit'],
    ['unlimted', 'unlimited'],
    ['shadowmode', 'shadow_mode'],
    ['kye', 'key'],
    ['burst', undefined],
    ['x', undefined],
    ['', undefined],
    ['something_else_entirely', undefined],
  ])('of %j is %j', (misspelt, expected) => {
    expect(nearestName(misspelt, names)).toBe(expected);
  });

  it('is the first of several that are equally near', () => {
    expect(nearestName('abcx', ['abcd', 'abce'])).toBe('abcd');
  });
});

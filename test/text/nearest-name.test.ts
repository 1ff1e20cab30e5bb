import * as fc from 'fast-check';
import { KEY_TOLERANCE, VARIABLE_TOLERANCE, editDistance, nearestName } from '../../src/text/nearest-name';

describe('editDistance', () => {
  it.each([
    ['', '', 0],
    ['same', 'same', 0],
    ['', 'abc', 3],
    ['abc', 'abcd', 1],
    ['abcd', 'abc', 1],
    ['abcd', 'abxd', 1],
    ['abcd', 'acbd', 1],
    // The optimal string alignment: no character is edited twice.
    ['ca', 'abc', 3],
    ['kitten', 'sitting', 3],
  ])('from %j to %j is %i', (from, to, edits) => {
    expect(editDistance(from, to)).toBe(edits);
  });

  it('is the bound when the texts differ by more', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 12 });
    fc.assert(
      fc.property(text, text, fc.integer({ min: 1, max: 12 }), (from, to, bound) => {
        expect(editDistance(from, to, bound)).toBe(Math.min(editDistance(from, to), bound));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('the nearest key of a rule file', () => {
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
  ])('to %j is %j', (misspelt, expected) => {
    expect(nearestName(misspelt, names, KEY_TOLERANCE)).toBe(expected);
  });

  it('is the first of several that are equally near', () => {
    expect(nearestName('abcx', ['abcd', 'abce'], KEY_TOLERANCE)).toBe('abcd');
  });
});

describe('the nearest environment variable', () => {
  const names = ['PORT', 'GRPC_PORT', 'STATSD_HOST', 'LOCAL_CACHE_SIZE', 'KVSTORE_POOL_SIZE'];
  it.each([
    // Names under 10 characters are never corrected.
    ['PORTS', undefined],
    ['GRPC_PRT', undefined],
    // 10 to 13 characters: one edit.
    ['STATSD_HSOT', 'STATSD_HOST'],
    ['STATS_HOST', 'STATSD_HOST'],
    ['STATS_HOTS', undefined],
    // 14 and more: two edits.
    ['LOCAL_CACH_SIEZ', 'LOCAL_CACHE_SIZE'],
    ['KVSTORE_POLL_SIZE', 'KVSTORE_POOL_SIZE'],
    ['KVSTORE_POOL', undefined],
    // Case and separators count.
    ['local_cache_size', undefined],
    ['LOCAL-CACHE-SIZE', 'LOCAL_CACHE_SIZE'],
  ])('to %j is %j', (misspelt, expected) => {
    expect(nearestName(misspelt, names, VARIABLE_TOLERANCE)).toBe(expected);
  });
});

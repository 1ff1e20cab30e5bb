import { parseAccept } from '../../../src/http/versioning/accept/accept-header';
import { chooseVersion } from '../../../src/http/versioning/accept/choose-version';

const BLOCK = {
  vendor: 'acme',
  defaultVersion: 1,
  versions: [1, 2, 3],
  formats: new Set(['json']),
  routeOptions: { sensitive: true },
};
const A = 'application/vnd.acme';

/** Headers, with `A` for the vendor's type, and the version that they select; undefined: none. */
const CHOICES: Readonly<Record<string, number | undefined>> = {
  '': 1,
  '*/*': 1,
  'application/*': 1,
  'text/html': 1,
  'application/json': 1,
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8': 1,
  garbage: 1,
  ',,': 1,
  'A+json': 1,
  A: 1,
  'A+json; ': 1,
  'A+json;version=2': 2,
  'A+json; version=2': 2,
  'A+json ; version = 2': 2,
  'A + json;version=2': 2,
  'A\t+\tjson;version=2': 2,
  'A+json;version=2;': 2,
  'A;version=2': 2,
  'APPLICATION/VND.ACME+JSON;VERSION=2': 2,
  'A+json;version="2"': 2,
  'A+json;q=0.9;version=2': 2,
  'A+json;charset=utf-8;version=2': 2,
  'A+json;a="x,y;version=3";version=2': 2,
  'A+json;version=2;version=3': 2,
  'A+json;version=': 1,
  'A+json;subversion=2': 1,
  'A+json;version=2;q=0.1, A+json;version=3': 3,
  'A+json;version=2;q=0.5,A+json;version=3;q=0.50': 2,
  'A+json;version=2;q=abc': 2,
  'A+json;version=2, */*': 2,
  '*/*, A+json;version=2;q=0.1': 2,
  'application/vnd.other+json;version=3, A+json;version=2;q=0.1': 2,
  'application/vnd.other+json;version=3, text/html': 1,
  'A+json;version=9, A+json;version=2;q=0.5': 2,
  'A+xml;version=2, A+json;version=3;q=0.5': 3,
  'A+json;version=9': undefined,
  'A+json;version=9, */*;q=0.1': undefined,
  'A+json;version=02': undefined,
  'A+json;version=2.1': undefined,
  'A+json;version=x': undefined,
  'A+xml;version=2': undefined,
  'A+json;version=2;q=0': undefined,
  'A+json;version=2;q=0, */*': 1,
  'application/vnd.other+json': undefined,
  'application/vnd.other+json;version=1': undefined,
  'application/vnd.acme.books+json;version=1': undefined,
};

describe('the version that a request selects', () => {
  it.each(Object.entries(CHOICES))('Accept: %s', (header, version) => {
    expect(chooseVersion(header.replaceAll(/\bA\b/g, A), BLOCK)).toBe(version);
  });

  it('is the default version without a header', () => {
    expect(chooseVersion(undefined, BLOCK)).toBe(1);
  });
});

describe('a list of media types', () => {
  it('is read up to 64 types', () => {
    expect(parseAccept('a/b,'.repeat(10_000))).toHaveLength(64);
  });

  it('takes no time that grows faster than its length', () => {
    // A quadratic reader needs minutes for a header of this length.
    const spaces = ' '.repeat(1_000_000);
    expect(chooseVersion(`${A}${spaces}+json;version${spaces}=${spaces}2`, BLOCK)).toBe(2);
  });
});

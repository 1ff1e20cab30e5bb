import fc from 'fast-check';
import { compileWildcards } from '../../../src/rules/wildcards/compile-wildcards';
import { Wildcard } from '../../../src/rules/wildcards/wildcard';
import { WildcardIndex } from '../../../src/rules/wildcards/wildcard-index';
import { TooMuchWork, UNLIMITED_WORK, WorkBudget } from '../../../src/rules/wildcards/work-budget';

/** A tiny alphabet, so that parts overlap and are parts of each other. */
function pattern(letters: readonly string[], maxLength: number): fc.Arbitrary<string> {
  return fc
    .string({ unit: fc.constantFrom(...letters, '*'), minLength: 1, maxLength })
    .map((text) => (text.includes('*') ? text : `${text}*`));
}

function valueOf(letters: readonly string[], maxLength: number): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...letters), maxLength });
}

/** What the index replaces: every wildcard is tried, in order. */
function oneByOne(patterns: readonly string[], value: string): number {
  return patterns.findIndex((each) => new Wildcard(each).matches(value));
}

function indexOf(patterns: readonly string[]): (value: string) => number {
  const index = new WildcardIndex(compileWildcards(patterns));
  return (value) => index.find(value, UNLIMITED_WORK);
}

describe('the index finds the wildcard that trying one after the other finds', () => {
  it.each([
    ['one letter', ['a'], 8, 12],
    ['two letters', ['a', 'b'], 7, 12],
    ['three letters', ['a', 'b', 'c'], 9, 30],
  ])('for a few patterns of %s', (_name, letters, patternLength, valueLength) => {
    fc.assert(
      fc.property(
        fc.array(pattern(letters, patternLength), { minLength: 1, maxLength: 12 }),
        fc.array(valueOf(letters, valueLength), { minLength: 1, maxLength: 12 }),
        (patterns, values) => {
          const find = indexOf(patterns);
          for (const value of values) expect([value, find(value)]).toEqual([value, oneByOne(patterns, value)]);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

it('the index of many patterns finds the one that trying one after the other finds', () => {
  fc.assert(
    fc.property(
      fc.array(pattern(['a', 'b', 'c'], 10), { minLength: 200, maxLength: 400, size: 'max' }),
      fc.array(valueOf(['a', 'b', 'c'], 40), { minLength: 20, maxLength: 20, size: 'max' }),
      (patterns, values) => {
        // Patterns that match almost everything come last, so that the others matter.
        const ordered = patterns.toSorted((one, other) => fixedLength(other) - fixedLength(one));
        const find = indexOf(ordered);
        for (const value of values) expect([value, find(value)]).toEqual([value, oneByOne(ordered, value)]);
      },
    ),
    { numRuns: 60 },
  );
});

function fixedLength(each: string): number {
  return each.replaceAll('*', '').length;
}

it('compiled patterns that were cloned, as between threads, find the same', () => {
  const patterns = ['a*b', '*cc*', '*a*c*a*', 'x*', '*y'];
  const index = new WildcardIndex(structuredClone(compileWildcards(patterns)));
  for (const value of ['ab', 'cc', 'bacba', 'x', 'zy', 'a', '']) {
    expect([value, index.find(value, UNLIMITED_WORK)]).toEqual([value, oneByOne(patterns, value)]);
  }
});

it('compares by UTF-16 code unit: characters outside the basic plane are whole, and a lone surrogate equals only itself', () => {
  const patterns = ['*😀*', '*é', '\uFFFD*', '*日*本*'];
  const find = indexOf(patterns);
  for (const value of [
    'a😀b',
    '😁',
    '\uD83D',
    '\uDE00\uD83D',
    'cafe\u0301',
    'café',
    '\uFFFDx',
    '\uD800x',
    '本日',
    '日x本',
  ]) {
    expect([value, find(value)]).toEqual([value, oneByOne(patterns, value)]);
  }
});

describe('the work of a search', () => {
  /** How many steps a search needs. */
  function workOf(patterns: readonly string[], value: string): number {
    const index = new WildcardIndex(compileWildcards(patterns));
    let [low, high] = [-1, 2 ** 30];
    while (high - low > 1) {
      const steps = (low + high) >> 1;
      try {
        index.find(value, new WorkBudget(steps));
        high = steps;
      } catch (error) {
        expect(error).toBeInstanceOf(TooMuchWork);
        low = steps;
      }
    }
    return high;
  }
  function numbered(count: number, make: (index: number) => string): readonly string[] {
    return Array.from({ length: count }, (_, index) => make(index));
  }

  it.each([
    ['parts at the start', (index: number) => `a${'a'.repeat(index)}*`],
    ['parts at the end', (index: number) => `*b${'a'.repeat(index)}`],
    ['parts anywhere', (index: number) => `*${'a'.repeat(index)}c*`],
  ])('needs no steps for patterns of one part, however many end at one position: %s', (_name, make) => {
    expect(workOf(numbered(1000, make), 'a'.repeat(4000))).toBe(0);
  });

  it('does not grow with the number of patterns whose parts are different', () => {
    const value = '/tenant-7/x/list';
    const few = workOf(
      numbered(10, (index) => `/tenant-${index}/*/list`),
      value,
    );
    expect(
      workOf(
        numbered(10_000, (index) => `/tenant-${index}/*/list`),
        value,
      ),
    ).toBe(few);
    expect(few).toBeLessThan(10);
  });

  it('includes the characters that are searched in a very large index, and no others', () => {
    const infixes = numbered(10_000, (index) => `*needle${index}x*`);
    expect(workOf(infixes.slice(0, 100), 'y'.repeat(1000))).toBe(0);
    const many = numbered(10_000, (index) => `*${index}-${(index * 7919) % 10_000}-needle*`);
    expect(workOf(many, 'y'.repeat(1000))).toBe(8000);
    const prefixes = numbered(10_000, (index) => `${index}-${(index * 7919) % 10_000}-needle*`);
    expect(workOf(prefixes, `7-${'y'.repeat(1000)}`)).toBe(0);
  });

  it('ends with an error when the parts of many patterns end at each position of a value', () => {
    const index = new WildcardIndex(compileWildcards(numbered(1000, (count) => `*${'a'.repeat(count + 1)}*x*`)));
    expect(() => index.find('a'.repeat(4000), new WorkBudget(100_000))).toThrow(TooMuchWork);
    expect(index.find('a'.repeat(4000), UNLIMITED_WORK)).toBe(-1);
    expect(index.find('aaax', new WorkBudget(100_000))).toBe(0);
  });
});

import { RegexSyntaxError, compileRe2 } from '../../../../src/sinks/statistics/mapping/re2';

describe('compileRe2', () => {
  it.each([
    ['a.c', 'xabcx', 'abc'],
    ['(?P<one>a)(?<two>b)', 'ab', 'ab'],
    ['(?i)ABC', 'abc', 'abc'],
    ['(?is)a.B', 'A\nb', 'A\nb'],
    ['(?m)^b$', 'a\nb\nc', 'b'],
    [String.raw`\Aab\z`, 'ab', 'ab'],
    [String.raw`(?m)\Ab`, 'a\nb', undefined],
    [String.raw`\Qa.b*\E.`, 'a.b*c', 'a.b*c'],
    [String.raw`\Qa.b`, 'axb', undefined],
    ['[[:alpha:]]+', '12ab3', 'ab'],
    ['[^[:digit:]_]+', '12ab_3', 'ab'],
    ['[]a]+', 'x]a', ']a'],
    ['[^]a]+', ']ax', 'x'],
    ['[a-]+', 'b-a', '-a'],
    ['[-a]+', 'b-a', '-a'],
    ['[+.*]+', 'a+.*', '+.*'],
    [String.raw`[\w\-]+`, '.a-b.', 'a-b'],
    [String.raw`[\]\[]+`, 'a[]', '[]'],
    [String.raw`\pL+`, '1é2', 'é'],
    [String.raw`\p{Greek}+`, 'aβγ', 'βγ'],
    [String.raw`\P{L}+`, 'a12', '12'],
    [String.raw`\p{^L}+`, 'a12', '12'],
    [String.raw`\x41\x{42}\101`.slice(0, -4), 'AB', 'AB'],
    [String.raw`\.\-\_\/\"`, '.-_/"', '.-_/"'],
    ['a{2}', 'aaa', 'aa'],
    ['a{2,}', 'aaa', 'aaa'],
    ['a{x}', 'a{x}', 'a{x}'],
    ['}]', '}]', '}]'],
    ['a*?b', 'aab', 'aab'],
    ['(?:a|b)+', 'abc', 'ab'],
    ['😀.', '😀x', '😀x'],
    ['a(?i)b', 'aB', 'aB'],
    ['(?i:A)b', 'ab', 'ab'],
    ['(?U)a+', 'aaa', 'a'],
    ['[[:^digit:]]+', '12ab', 'ab'],
  ])('compiles %j, which in %j finds %j', (source, text, found) => {
    expect(compileRe2(source).exec(text)?.[0]).toBe(found);
  });

  it('keeps named groups', () => {
    expect(compileRe2('(?P<n>a)').exec('a')?.groups).toEqual({ n: 'a' });
    expect(compileRe2('(a)').exec('a')?.groups).toBeUndefined();
  });

  it('gives undefined for a group that does not participate', () => {
    const match = compileRe2('(a)|(?P<n>b)').exec('a');
    expect([...match!]).toEqual(['a', 'a', undefined]);
    expect(match?.groups).toEqual({ n: undefined });
  });

  it('matches in linear time where backtracking takes exponential time', () => {
    // Backtracking doubles its work with each letter: it would not end within the lifetime of the test.
    expect(compileRe2('(a+)+b$').exec(`${'a'.repeat(100)}c`)).toBeNull();
  });

  it.each([
    ['(?=a)', 'invalid or unsupported Perl syntax: (?='],
    ['(?!a)', 'invalid or unsupported Perl syntax: (?!'],
    ['(?<=a)b', 'invalid named capture: (?<=a)b'],
    ['(?<!a)b', 'invalid named capture: (?<!a)b'],
    [String.raw`(a)\1`, String.raw`invalid escape sequence: \1`],
    [String.raw`\k<a>`, String.raw`invalid escape sequence: \k`],
    [String.raw`a\Z`, String.raw`invalid escape sequence: \Z`],
    ['[a', 'missing closing ]: [a'],
    ['[[:nothing:]]', 'invalid character class range: [:nothing:]'],
    ['a\\', 'trailing backslash at end of expression'],
    ['(', 'missing closing ): ('],
    ['a**', 'invalid nested repetition operator: **'],
    ['*', 'missing argument to repetition operator: *'],
    [String.raw`\x4`, String.raw`invalid escape sequence: \x4`],
    ['a{1001}', 'invalid repeat count: {1001}'],
  ])('rejects %j', (source, message) => {
    expect(() => compileRe2(source)).toThrow(expect.objectContaining({ name: RegexSyntaxError.name, message }));
  });
});

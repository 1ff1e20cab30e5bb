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
  ])('compiles %j, which in %j finds %j', (source, text, found) => {
    expect(compileRe2(source).exec(text)?.[0]).toBe(found);
  });

  it('keeps named groups', () => {
    expect(compileRe2('(?P<n>a)').exec('a')?.groups).toEqual({ n: 'a' });
  });

  it.each([
    ['(?=a)', '(?=a is not valid in RE2 syntax'],
    ['(?!a)', '(?!a is not valid in RE2 syntax'],
    ['(?<=a)b', '(?<= is not valid in RE2 syntax'],
    ['(?<!a)b', '(?<! is not valid in RE2 syntax'],
    [String.raw`(a)\1`, String.raw`\1 is not valid in RE2 syntax`],
    [String.raw`\k<a>`, String.raw`\k is not valid in RE2 syntax`],
    [String.raw`a\Z`, String.raw`\Z is not valid in RE2 syntax`],
    ['(?U)a+', 'the flag (?U) is not supported'],
    ['a(?i)b', 'flags are supported only at the beginning'],
    ['a(?i:b)', 'flags are supported only at the beginning'],
    ['[a', 'a character class lacks its closing ]'],
    ['[[:nothing:]]', 'the character class [:nothing:] is not supported'],
    ['a\\', 'trailing backslash'],
    ['(', /Unterminated group/],
    ['a**', /Nothing to repeat/],
    ['*', /Nothing to repeat/],
    [String.raw`\x4`, /two hexadecimal digits/],
  ])('rejects %j', (source, message) => {
    expect(() => compileRe2(source)).toThrow(RegexSyntaxError);
    expect(() => compileRe2(source)).toThrow(message);
  });
});

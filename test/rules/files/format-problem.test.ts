import { formatProblem, summarizeProblem } from '../../../src/rules/files/problems/format-problem';
import type { Problem } from '../../../src/rules/files/problems/problem';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';

/** The first error of a text. */
function errorOf(text: string): Problem {
  const files = [{ path: 'shop.yaml', content: new TextEncoder().encode(text) }];
  const [error] = readRuleFiles(files, { mergeDomainConfigs: false }).errors;
  if (error === undefined) throw new Error('there is no error');
  return error;
}

/** The displayed line and the carets under it. */
function shown(text: string) {
  return formatProblem(errorOf(text))
    .split('\n')
    .slice(1, 3)
    .map((line) => line.replace('  | ', ''));
}

describe('a problem', () => {
  it('is printed with its place, message, code, line and advice', () => {
    expect(formatProblem(errorOf('domain: d\ndescriptors:\n- key: a\n  vale: b\n'))).toBe(
      [
        "shop.yaml:4:3: error: config error, unknown key 'vale' [unknown-key]",
        '  |   vale: b',
        '  |   ^^^^',
        '  Did you mean `value`?',
      ].join('\n'),
    );
  });

  it('is summarized on one line for a log', () => {
    expect(summarizeProblem(errorOf('domain: d\ndescriptors:\n- key: a\n  vale: b\n'))).toBe(
      "shop.yaml:4:3: config error, unknown key 'vale'. Did you mean `value`?",
    );
  });

  it('is plain data with line and column counted from 1', () => {
    expect(errorOf('domain: d\ndescriptors:\n- key: a\n  vale: b\n')).toEqual({
      code: 'unknown-key',
      severity: 'error',
      file: 'shop.yaml',
      line: 4,
      column: 3,
      sourceLine: '  vale: b',
      mark: { start: 2, length: 4 },
      message: "config error, unknown key 'vale'",
      advice: 'Did you mean `value`?',
    });
  });
});

describe('the carets', () => {
  it('are under the marked text after a tab, which keeps its width', () => {
    expect(shown('domain: d\ndescriptors: [{key: a,\tvale: b}]')).toEqual([
      'descriptors: [{key: a,\tvale: b}]',
      '                      \t^^^^',
    ]);
  });

  it('are under the marked text after wide characters, each of which takes two columns', () => {
    expect(shown('domain: d\ndescriptors: [{key: 日本😀, vale: b}]')).toEqual([
      'descriptors: [{key: 日本😀, vale: b}]',
      '                            ^^^^',
    ]);
  });

  it('are two under a wide character', () => {
    expect(shown('domain: d\ndescriptors: [{key: a, 日本: b}]')[1]).toBe('                       ^^^^');
  });

  it('do not count characters without a column, such as a combining accent', () => {
    expect(shown('domain: d\ndescriptors: [{key: e\u0301, vale: b}]')[1]).toBe('                       ^^^^');
  });

  it('end with the line', () => {
    expect(shown('domain: d\ndescriptors:\n- key: a\n  shadow_mode: "a\n\n    b"\n')).toEqual([
      '  shadow_mode: "a',
      '               ^^',
    ]);
  });

  it('do not include a CRLF line break', () => {
    expect(shown('domain: d\r\ndescriptors:\r\n- vale\r\n')).toEqual(['- vale', '  ^^^^']);
  });
});

describe('the column', () => {
  it('counts characters, not bytes or UTF-16 code units', () => {
    const { column, mark } = errorOf('domain: d\ndescriptors: [{key: 日本😀, vale: b}]');
    expect(column).toBe(26);
    expect(mark.start).toBe(26);
  });
});

describe('a very long line', () => {
  const before = '{key: a, value: ' + 'x'.repeat(500) + '😀}, ';
  const after = ', {key: b}'.repeat(200);

  it('is cut around the marked text', () => {
    const problem = errorOf(`domain: d\ndescriptors: [${before}{key: c, vale: b}${after}]`);
    // The emoji is one character of two code units.
    expect(problem.column).toBe('descriptors: [{key: c, '.length + before.length);
    expect(problem.sourceLine.length).toBeLessThanOrEqual(162);
    expect(problem.sourceLine).toMatch(/^….*…$/u);
    expect(problem.sourceLine.slice(problem.mark.start, problem.mark.start + problem.mark.length)).toBe('vale');
  });

  it('is cut on only one side near its ends', () => {
    expect(errorOf(`domain: d\ndescriptors: [{key: c, vale: b}${after}]`).sourceLine).toMatch(/^descriptors: .*…$/u);
    expect(errorOf(`domain: d\ndescriptors: [${before}{key: c, vale: b}]`).sourceLine).toMatch(/^….*\]$/u);
  });

  it('is never cut through a character', () => {
    for (let shift = 0; shift < 4; shift += 1) {
      const { sourceLine } = errorOf(
        `domain: d\ndescriptors: [{key: "${'x'.repeat(shift)}${'😀'.repeat(300)}", vale: b}]`,
      );
      // Encoding replaces a lone surrogate.
      expect(new TextDecoder().decode(new TextEncoder().encode(sourceLine))).toBe(sourceLine);
    }
  });

  it('is processed as fast as a short one when it has many errors', () => {
    const text = `{"domain": "d", "descriptors": [${'{"kex": "a"}, '.repeat(20_000)}{}]}`;
    const files = [{ path: 'shop.yaml', content: new TextEncoder().encode(text) }];
    const { errors } = readRuleFiles(files, { mergeDomainConfigs: false });
    expect(errors).toHaveLength(40_001);
    expect(Math.max(...errors.map(({ sourceLine }) => sourceLine.length))).toBeLessThanOrEqual(162);
  });
});

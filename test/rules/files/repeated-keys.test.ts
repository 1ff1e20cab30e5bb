import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import type { RuleConfig } from '../../../src/rules/rule-config';

/** The rules of a text that has no errors. */
function rulesOf(text: string): readonly RuleConfig[] {
  const files = [{ path: 'a.yaml', content: new TextEncoder().encode(text) }];
  const { configs, errors } = readRuleFiles(files, { mergeDomainConfigs: false });
  expect(errors).toEqual([]);
  return configs[0]?.descriptors ?? [];
}

describe('a key that is repeated many times', () => {
  it.each(['rate_limit: {unit: day, requests_per_unit: 1}', 'metadata: {a: 1}'])(
    'is read in linear time: %s',
    (field) => {
      function milliseconds(count: number) {
        const start = performance.now();
        expect(rulesOf(`domain: d\ndescriptors:\n- key: k\n${`  ${field}\n`.repeat(count)}`)).toHaveLength(1);
        return performance.now() - start;
      }
      milliseconds(1000);
      // Quadratic time would be 64 times as long.
      expect(milliseconds(40_000)).toBeLessThan(30 * milliseconds(5000));
    },
  );

  it('is allowed more often than a function can have arguments', () => {
    const field = '  rate_limit: {unit: day, requests_per_unit: 1}\n';
    expect(rulesOf(`domain: d\ndescriptors:\n- key: k\n${field.repeat(130_000)}`)).toHaveLength(1);
  });
});

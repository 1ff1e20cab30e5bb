import { readRuleFiles } from '../../src/rules/files/read-rule-files';
import { type Ruleset, buildRuleset } from '../../src/rules/ruleset';
import { RowsBuilder, rowsOf } from '../../src/rules/rows/rule-rows';

const FILES = {
  'a.yaml': `domain: shop
descriptors:
  - key: user
    value: 'é😀'
    descriptors: [{ value: x, key: path }, {   key: path   }]
`,
  'sub/b.yaml': `descriptors:
    - rate_limit: { unit: hour, requests_per_unit: 1 }
      key: plan
domain: shop
`,
  'c.yaml': 'domain: other\ndescriptors: [{key: k}]\n',
};

function read() {
  const files = Object.entries(FILES).map(([path, text]) => ({ path, content: Buffer.from(text) }));
  return readRuleFiles(files, { mergeDomainConfigs: true });
}

function placesOf(ruleset: Ruleset): Record<string, string> {
  const user = ruleset.domain('shop')?.get('user', 'é😀');
  const rules = {
    user,
    'path x': user?.nested?.get('path', 'x'),
    path: user?.nested?.get('path', ''),
    plan: ruleset.domain('shop')?.get('plan', ''),
    k: ruleset.domain('other')?.get('k', ''),
  };
  return Object.fromEntries(
    Object.entries(rules).map(([name, rule]) => [
      name,
      `${rule?.place?.file}:${rule?.place?.line}:${rule?.place?.column}`,
    ]),
  );
}

const EXPECTED = {
  user: 'a.yaml:3:10',
  'path x': 'a.yaml:5:36',
  path: 'a.yaml:5:53',
  plan: 'sub/b.yaml:3:12',
  k: 'c.yaml:2:21',
};

it('a rule knows the file, the line and the column of its key', () => {
  const { configs, placeOf } = read();
  expect(placesOf(buildRuleset(configs, placeOf))).toEqual(EXPECTED);
});

it('a rule that was sent as a row knows its place, and a file is a row only where it changes', () => {
  const { configs, placeOf } = read();
  const rows = structuredClone([...rowsOf(configs, placeOf)]);
  const builder = new RowsBuilder();
  builder.add(rows);
  expect(placesOf(builder.done())).toEqual(EXPECTED);
  expect(rows.flatMap((row) => ('file' in row ? [row.file] : []))).toEqual(['a.yaml', 'sub/b.yaml', 'c.yaml']);
});

it('a rule that is not from a file has no place', () => {
  const { configs } = read();
  expect(buildRuleset(configs).domain('other')?.get('k', '')?.place).toBeUndefined();
});

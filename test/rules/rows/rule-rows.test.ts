import { compileWildcards } from '../../../src/rules/wildcards/compile-wildcards';
import { RowsBuilder, type RuleRow, rowsOf } from '../../../src/rules/rows/rule-rows';
import { domainConfig, limit } from '../../support/data/rules';

function wildcards(count: number, prefix: string) {
  return Array.from({ length: count }, (_, index) => ({
    key: 'path',
    value: `/${prefix}${index}/*`,
    rateLimit: limit(index, 'MINUTE'),
  }));
}

const CONFIG = domainConfig(
  'shop',
  { key: 'user', value: 'a*' },
  { key: 'tenant', descriptors: wildcards(20, 'nested') },
  ...wildcards(30, 'top'),
);

/** The rule of `/<prefix>7/…` at the top level and below `tenant`, after rows were transferred. */
function found(rows: readonly RuleRow[]) {
  const builder = new RowsBuilder();
  builder.add(structuredClone(rows));
  const top = builder.done().domain('shop');
  return [top?.find('path', '/top7/x')?.value, top?.find('tenant', 't')?.nested?.find('path', '/nested7/x')?.value];
}

it('the wildcards of a key are a row after the rules of their level, unless they are few', () => {
  const rows = [...rowsOf([CONFIG])];
  const kinds = rows.map((row) => ('wildcards' in row ? `${row.depth} ${row.wildcards.key}` : 'rule'));
  expect(kinds.filter((kind) => kind !== 'rule')).toEqual(['1 path', '0 path']);
  expect(kinds.indexOf('1 path')).toBe(2 + 1 + 20);
  expect(kinds.at(-1)).toBe('0 path');
  expect(found(rows)).toEqual(['/top7/*', '/nested7/*']);
});

it('a ruleset built from rows searches with the wildcards that the rows bring', () => {
  const compiled = compileWildcards(Array.from({ length: 30 }, (_, index) => `/other${index}/*`));
  const rows = Array.from(rowsOf([CONFIG]), (row): RuleRow =>
    'wildcards' in row ? { ...row, wildcards: { ...row.wildcards, compiled } } : row,
  );
  expect(found(rows)).toEqual([undefined, undefined]);
});

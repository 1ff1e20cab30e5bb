import { ATTACKS, attackTables, attackTests } from './attack-tests';

test('every attack has a row in test/README.md, and every row an attack, in the same order', () => {
  const rows = [...attackTables()].map(([heading, table]) => [heading, table.map(({ attack }) => attack)]);
  expect(rows).toEqual(Object.entries(ATTACKS).map(([heading, attacks]) => [heading, Object.keys(attacks)]));
});

attackTests('fast');

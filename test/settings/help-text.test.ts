import { helpText } from '../../src/settings/docs/help-text';
import { settingsTable } from '../../src/settings/table/settings-table';

const names = settingsTable.flatMap((group) => [
  ...group.settings.flatMap((row) => [row.name, ...('alias' in row && row.alias !== undefined ? [row.alias] : [])]),
  ...('families' in group ? (group.families?.flatMap(({ name, alias }) => [name, alias]) ?? []) : []),
]);

describe('the help text', () => {
  const help = helpText();

  test('begins with the usage', () => {
    expect(help).toMatch(/^Usage: weir \[-h \| --help \| --version\]\n/);
  });

  test('fits a terminal of 100 columns', () => {
    expect(help.split('\n').filter((line) => line.length > 100)).toEqual([]);
  });

  test('has no blanks at the end of a line and no two empty lines in a row', () => {
    expect(help).not.toMatch(/ \n|\n\n\n/);
  });

  test.each(names)('lists %s', (name) => {
    expect(help).toMatch(new RegExp(`^  (\\S+ \\| )?${name}( \\| |$)`, 'm'));
  });

  test('lists the settings in the order of the table, each secret with the name of its file', () => {
    const listed = [...help.matchAll(/^ {2}([A-Z][A-Z\d_]+)(?: \| \S+)?$/gm)].map(([, name]) => name);
    const expected = settingsTable.flatMap(({ settings }) =>
      settings.flatMap((row) =>
        'secret' in row && row.secret !== undefined ? [row.name, `${row.name}_FILE`] : [row.name],
      ),
    );
    expect(listed).toEqual(expected);
  });

  test('shows the alias, meaning, allowed values and default of a setting', () => {
    expect(help).toContain(
      [
        '  KVSTORE_STARTUP_MAX_INTERVAL | REDIS_STARTUP_MAX_INTERVAL',
        '      Longest delay between two attempts to connect at startup. [duration, above 0; default: 30s]',
        '',
      ].join('\n'),
    );
  });

  test.each(['Redis or Valkey', 'memcached', 'statsd', 'DogStatsD', 'Prometheus', 'OpenTelemetry'])(
    'names %s in a heading',
    (product) => {
      expect(help.split('\n').filter((line) => /^\S.*\(/.test(line) && line.includes(product))).not.toEqual([]);
    },
  );
});

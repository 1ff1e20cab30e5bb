import { helpText } from '../../src/settings/docs/help-text';
import { settingsMarkdown } from '../../src/settings/docs/settings-markdown';
import { settingsTable } from '../../src/settings/table/settings-table';

const names = settingsTable.flatMap((group) => [
  ...group.settings.flatMap((row) => [row.name, ...('alias' in row && row.alias !== undefined ? [row.alias] : [])]),
  ...('families' in group ? (group.families?.flatMap(({ name, alias }) => [name, alias]) ?? []) : []),
]);

describe('the help text', () => {
  const help = helpText();

  test('begins with how to use the program', () => {
    expect(help).toMatch(/^Usage: weir \[-h \| --help\]\n/);
  });

  test('fits a terminal of 100 columns', () => {
    expect(help.split('\n').filter((line) => line.length > 100)).toEqual([]);
  });

  test('has no blanks at the end of a line and no two empty lines in a row', () => {
    expect(help).not.toMatch(/ \n|\n\n\n/);
  });

  test.each(names)('names %s', (name) => {
    expect(help).toMatch(new RegExp(`^  (\\S+ \\| )?${name}( \\| |$)`, 'm'));
  });

  test('says of a setting its second name, meaning, values and default', () => {
    expect(help).toContain(
      [
        '  KVSTORE_STARTUP_MAX_INTERVAL | REDIS_STARTUP_MAX_INTERVAL',
        '      At start, longest wait between two tries. [duration, above 0; default: 30s]',
        '',
      ].join('\n'),
    );
  });
});

describe("the README's tables", () => {
  const markdown = settingsMarkdown();

  test('have a row for every setting', () => {
    for (const group of settingsTable)
      for (const { name } of group.settings) expect(markdown).toContain(`\n| \`${name}\` | `);
  });

  test('have five cells in every row', () => {
    const rows = markdown.split('\n').filter((line) => line.startsWith('|'));
    expect(rows.filter((row) => row.split('|').length !== 7)).toEqual([]);
  });

  test('show variables, patterns and addresses as code', () => {
    expect(markdown).toContain('Rule files are `*.yaml` and `*.yml` below `RUNTIME_ROOT`/`RUNTIME_SUBDIRECTORY`/');
    expect(markdown).toContain('| `[host]:port` | `:9090` |');
    expect(markdown).toContain('| `_service._protocol.name` |  |');
  });
});

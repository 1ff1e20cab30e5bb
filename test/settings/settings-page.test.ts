import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { anchorOf, settingsPage } from '../../src/settings/docs/settings-page';
import { settingsTable } from '../../src/settings/table/settings-table';

describe('docs/settings.md', () => {
  const page = settingsPage();

  test('is the page that the table generates (node scripts/settings-table.mjs writes it)', () => {
    expect(readFileSync(join(__dirname, '../../docs/settings.md'), 'utf8')).toBe(page);
  });

  test('has a row for every setting and every family of settings', () => {
    for (const group of settingsTable) {
      for (const { name } of group.settings) expect(page).toContain(`\n| \`${name}\` | `);
      for (const { name } of ('families' in group && group.families) || [])
        expect(page).toContain(`\n| \`${name}\` | `);
    }
  });

  test('has a row for the file of every secret, with its alias', () => {
    expect(page).toContain(
      '\n| `OPERATOR_TOKEN_FILE` |  | file path |  | File that contains `OPERATOR_TOKEN`, used instead of',
    );
    expect(page).toContain(
      '\n| `KVSTORE_URL_FILE` | `REDIS_URL_FILE` | file path |  | File that contains `KVSTORE_URL`,',
    );
    expect(page).toContain(
      '\n| `KVSTORE_AUTH_FILE` | `REDIS_AUTH_FILE` | file path |  | File that contains `KVSTORE_AUTH`,',
    );
  });

  test('has five cells in every row', () => {
    const rows = page.split('\n').filter((line) => line.startsWith('|'));
    expect(rows.filter((row) => row.split('|').length !== 7)).toEqual([]);
  });

  test('shows variables, patterns and addresses as code', () => {
    expect(page).toContain('Rule files are `*.yaml` and `*.yml` below `RUNTIME_ROOT`/`RUNTIME_SUBDIRECTORY`/');
    expect(page).toContain('| `[host]:port` | `:9090` |');
    expect(page).toContain('| `_service._protocol.name` |  |');
    expect(page).toContain('`KVSTORE_*`');
  });

  test('links to one heading for each group', () => {
    const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, title = '']) => title);
    expect(headings).toEqual(settingsTable.map(({ title }) => title));
    const links = [...page.matchAll(/^- \[(.*)\]\(#(.*)\)$/gm)].map(([, title, anchor]) => [title, anchor]);
    expect(links).toEqual(headings.map((title) => [title, anchorOf(title)]));
    expect(new Set(links.map(([, anchor]) => anchor)).size).toBe(settingsTable.length);
  });

  test.each([
    ['Key-value store (Redis or Valkey)', 'key-value-store-redis-or-valkey'],
    ['Statistics outputs (statsd, DogStatsD, Prometheus)', 'statistics-outputs-statsd-dogstatsd-prometheus'],
  ])('links to %j by the anchor that GitHub generates', (title, anchor) => {
    expect(anchorOf(title)).toBe(anchor);
  });

  test('states what a setting requires to have an effect', () => {
    expect(page).toContain('\n\nOnly with `BACKEND_TYPE=kvstore`. `KVSTORE_PIPELINE_WINDOW` is listed');
    expect(page).toContain('\n\nOnly with `BACKEND_TYPE=kvstore` and with `KVSTORE_PERSECOND=true`.');
    expect(page).toMatch(/^\| `KVSTORE_SENTINEL_AUTH` .* Only with `KVSTORE_TYPE=sentinel`\. \|$/m);
    expect(page).toMatch(/^\| `GRPC_PORT` .* Only without `GRPC_UDS`\. \|$/m);
  });
});

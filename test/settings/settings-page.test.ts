import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withSettings } from '../../src/settings/docs/readme-section';
import { settingsMarkdown } from '../../src/settings/docs/settings-markdown';

test("the README's tables of settings are those of the table (node scripts/settings-table.mjs writes them)", () => {
  const readme = readFileSync(join(__dirname, '../../README.md'), 'utf8');
  expect(readme).toBe(withSettings(readme));
});

describe('writing the settings into a README', () => {
  test('replaces what stands between the markers, and nothing else', () => {
    const readme = '# weir\n\n<!-- settings -->\nold\n<!-- /settings -->\n\nafter\n';
    expect(withSettings(readme)).toBe(
      `# weir\n\n<!-- settings -->\n\n${settingsMarkdown()}\n<!-- /settings -->\n\nafter\n`,
    );
  });

  test('changes nothing the second time', () => {
    const once = withSettings('<!-- settings --><!-- /settings -->');
    expect(withSettings(once)).toBe(once);
  });

  test.each([
    'no markers',
    '<!-- settings -->',
    '<!-- /settings -->',
    '<!-- /settings --> <!-- settings -->',
    '<!-- settings --><!-- settings --><!-- /settings -->',
    '<!-- settings --><!-- /settings --><!-- /settings -->',
  ])('refuses %j, whose markers are not a pair', (readme) => {
    expect(() => withSettings(readme)).toThrow('it needs one line <!-- settings -->');
  });
});

// Writes the tables of settings into the README, between its markers: node scripts/settings-table.mjs [README.md]
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { BUILD_STAMP, isStale, ROOT, say } from './workspace.mjs';

const fail = (sentence) => {
  say(sentence);
  process.exit(1);
};

if (isStale(BUILD_STAMP, ['src/settings'])) fail('src/settings is newer than its build: run npm run build first');
const { withSettings } = createRequire(import.meta.url)(join(ROOT, 'dist', 'settings', 'readme-section.js'));

const readme = process.argv[2] ?? join(ROOT, 'README.md');
if (!existsSync(readme)) fail(`there is no ${readme}`);
try {
  const text = readFileSync(readme, 'utf8');
  const updated = withSettings(text);
  if (updated !== text) writeFileSync(readme, updated);
  say(`the settings in ${readme} ${updated === text ? 'are as they should be' : 'are up to date now'}`);
} catch (error) {
  fail(`${readme} cannot be updated: ${error.message}`);
}

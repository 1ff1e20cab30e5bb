// Writes docs/settings.md from the table of settings in the last build: node scripts/settings-table.mjs
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { BUILD_STAMP, isStale, ROOT, printStatus } from './workspace.mjs';

if (isStale(BUILD_STAMP, ['src/settings'])) {
  printStatus('src/settings has changed since the last build: run npm run build first');
  process.exit(1);
}
const { settingsPage } = createRequire(import.meta.url)(join(ROOT, 'dist/settings/docs.js'));

const path = join(ROOT, 'docs', 'settings.md');
const page = settingsPage();
const changed = !existsSync(path) || readFileSync(path, 'utf8') !== page;
if (changed) writeFileSync(path, page);
printStatus(changed ? 'wrote docs/settings.md' : 'docs/settings.md is up to date');

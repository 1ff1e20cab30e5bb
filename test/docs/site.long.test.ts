import { execFile } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { ROOT, markdownFiles } from './markdown-files';

it('npm run site makes a page of each page of the documentation, with pictures, linked files and a search', async () => {
  using folder = new TemporaryFolder();
  const site = folder.at('site');
  // A link that leads nowhere ends it with an error.
  await promisify(execFile)('npm', ['run', 'site', '--', site], { cwd: ROOT, maxBuffer: 1e8 });
  const pages = markdownFiles().filter((file) => /^(?:docs|deploy|examples)\/|^(?:README|CHANGELOG)\.md$/.test(file));
  const made = pages.map((page) => page.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.md$/, '.html'));
  expect(made.filter((page) => !existsSync(join(site, page)))).toEqual([]);
  expect(readFileSync(join(site, 'docs/rules.html'), 'utf8')).toContain('A limit per user, with exceptions');
  expect(readFileSync(join(site, 'files/examples/config/shop.yaml'), 'utf8')).toContain('domain: shop');
  const assets = readdirSync(join(site, 'assets'), { recursive: true }).map(String);
  expect(assets.filter((name) => /^console-live\..*\.png$|localSearchIndex/.test(name)).length).toBeGreaterThanOrEqual(
    2,
  );
});

import { execFile } from 'node:child_process';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { promisify } from 'node:util';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { ROOT, markdownFiles } from './markdown-files';

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** The links of the pages that lead to no file of the site, or to no heading of a page. */
function deadLinks(site: string): readonly string[] {
  const pages = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.html'));
  const texts = new Map(pages.map((page) => [page, readFileSync(join(site, page), 'utf8')]));
  return [...texts].flatMap(([page, text]) => {
    const links = [...text.matchAll(/<a [^>]*href="([^"]*)"/g)].map(([, link]) => link!.replaceAll('&amp;', '&'));
    const inside = links.filter((link) => !/^[a-z]+:/.test(link));
    const dead = inside.filter((link) => {
      const [path = '', anchor] = link.split('#');
      const folder = path.startsWith('/') ? '.' : posix.dirname(page);
      const target = path === '' ? page : posix.join(folder, decodeURI(path).replace(/(^|\/)$/, '$1index.html'));
      const isThere = isFile(join(site, target));
      const isHeading = anchor === undefined || texts.get(target)?.includes(` id="${decodeURIComponent(anchor)}"`);
      return !isThere || isHeading === false;
    });
    return dead.map((link) => `${page}: ${link}`);
  });
}

it('npm run site makes a page of each page of the documentation, with pictures, linked files and a search', async () => {
  using folder = new TemporaryFolder();
  const site = folder.at('site');
  // A link that leads nowhere ends it with an error.
  await promisify(execFile)('npm', ['run', 'site', '--', site], { cwd: ROOT, maxBuffer: 1e8 });
  const pages = markdownFiles().filter((file) => /^(?:docs|deploy|examples)\/|^(?:README|CHANGELOG)\.md$/.test(file));
  const made = pages.map((page) => page.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.md$/, '.html'));
  expect(made.filter((page) => !isFile(join(site, page)))).toEqual([]);
  expect(readFileSync(join(site, 'docs/rules.html'), 'utf8')).toContain('A limit per user, with exceptions');
  expect(readFileSync(join(site, 'files/examples/config/shop.yaml'), 'utf8')).toContain('domain: shop');
  expect(deadLinks(site)).toEqual([]);
  const assets = readdirSync(join(site, 'assets'), { recursive: true }).map(String);
  expect(assets.filter((name) => /^console-live\..*\.png$|localSearchIndex/.test(name)).length).toBeGreaterThanOrEqual(
    2,
  );
});

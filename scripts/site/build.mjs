// Makes the documentation as static pages: node scripts/site/build.mjs [folder], by default release/site. VitePress has
// a package of its own here, so that it is installed only for this. A link that leads nowhere is an error.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT, isStale, printStatus, run, timed } from '../workspace.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const STAGED = join(HERE, '.staged');
const output = resolve(process.argv[2] ?? join(ROOT, 'release/site'));

/** The pages, by chapter; of a folder, those in it. */
const CHAPTERS = {
  Begin: ['README.md', 'docs/README.md', 'docs/getting-started.md', 'docs/migrating.md', 'docs/proxies.md'],
  Rules: [
    'docs/rules.md',
    'docs/rule-errors.md',
    'docs/testing-rules.md',
    'docs/rolling-out.md',
    'docs/usage.md',
    'docs/reservations.md',
    'docs/leases.md',
  ],
  Operate: [
    'docs/operations.md',
    'docs/runbook.md',
    'docs/operators-api.md',
    'docs/operations-reference.md',
    'docs/sizing.md',
    'docs/security.md',
  ],
  'Look up': ['docs/settings.md', 'docs/statistics.md', 'CHANGELOG.md'],
  'Deploy and try': ['deploy', 'examples', 'packages/versioning/README.md'],
  Develop: [
    'docs/architecture.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'THIRD-PARTY-LICENCES.md',
    'src',
    'bench',
    'test/README.md',
  ],
};

function pagesIn(path) {
  if (path.endsWith('.md')) return existsSync(join(ROOT, path)) ? [path] : [];
  return readdirSync(join(ROOT, path), { recursive: true })
    .map((name) => posix.join(path, name.replaceAll('\\', '/')))
    .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
    .toSorted();
}

const chapters = Object.entries(CHAPTERS).map(([text, paths]) => ({ text, pages: paths.flatMap(pagesIn) }));
const pages = new Set(chapters.flatMap((chapter) => chapter.pages));
const missing = pagesIn('docs').filter((page) => !pages.has(page));
if (missing.length > 0)
  throw new Error(`these pages are in no chapter of scripts/site/build.mjs: ${missing.join(', ')}`);

const LINK = /\[(?<text>[^\]]*)\]\((?<target>[^)\s]+)\)/g;
const FENCED = /^(```+)[^]*?^\1/gm;

/** The path of a page in the site. */
function stagedPath(page) {
  return page.replace(/(^|\/)README\.md$/, '$1index.md');
}

/**
 * A link in the site. Other files of the project that pages link to are part of it, in `files/`; folders without a page
 * are not.
 */
function linkIn(from, text, target) {
  if (/^[a-z]+:/.test(target) || target.startsWith('#')) return `[${text}](${target})`;
  const [path, anchor] = target.split('#');
  const found = posix.join(posix.dirname(from), decodeURI(path));
  const page = pages.has(found) ? found : posix.join(found, 'README.md');
  if (pages.has(page)) return `[${text}](/${stagedPath(page)}${anchor === undefined ? '' : `#${anchor}`})`;
  if (!existsSync(join(ROOT, found))) throw new Error(`${from} has a link that leads nowhere: ${target}`);
  // Pictures are relative to their page.
  if (/\.(?:svg|png)$/.test(found)) return `[${text}](${target})`;
  if (statSync(join(ROOT, found)).isDirectory()) return text;
  // VitePress takes other files for pages, and appends .html to their names.
  const file = /\.(?:json|ya?ml)$/.test(found) ? found : `${found}.txt`;
  cpSync(join(ROOT, found), join(STAGED, 'public/files', file));
  return `[${text}](/files/${file})`;
}

function stage(page) {
  const fences = [];
  const text = readFileSync(join(ROOT, page), 'utf8')
    .replaceAll(FENCED, (fence) => `\0${fences.push(fence) - 1}\0`)
    .replaceAll(/<!--[^]*?-->\n*/g, '')
    .replaceAll(LINK, (_, linked, target) => linkIn(page, linked, target))
    .replaceAll(/\0(\d+)\0/g, (_, index) => fences[index].replace(/^```decisions/, '```text'));
  const file = join(STAGED, stagedPath(page));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function titleOf(page) {
  return /^# (.*)$/m.exec(readFileSync(join(ROOT, page), 'utf8'))?.[1].replaceAll('`', '') ?? page;
}

if (
  isStale(join(HERE, 'node_modules/.package-lock.json'), [
    'scripts/site/package.json',
    'scripts/site/package-lock.json',
  ])
) {
  printStatus('installing the generator of the site (npm ci)');
  timed('installing', () => run('npm', ['ci', '--prefix', HERE, '--no-audit', '--no-fund', '--loglevel=error']));
}
rmSync(STAGED, { recursive: true, force: true });
for (const page of pages) stage(page);
cpSync(join(ROOT, 'docs/images'), join(STAGED, 'docs/images'), { recursive: true });
const sidebar = chapters.map(({ text, pages: of }) => ({
  text,
  items: of.map((page) => ({ text: titleOf(page), link: `/${stagedPath(page).replace(/(?:index)?\.md$/, '')}` })),
}));
mkdirSync(join(STAGED, '.vitepress'), { recursive: true });
writeFileSync(join(STAGED, '.vitepress/sidebar.json'), JSON.stringify(sidebar));
cpSync(join(HERE, 'config.mjs'), join(STAGED, '.vitepress/config.mjs'));
timed('making the site', () =>
  run(process.execPath, [join(HERE, 'node_modules/vitepress/bin/vitepress.js'), 'build', STAGED, '--outDir', output]),
);
rmSync(STAGED, { recursive: true, force: true });
printStatus(`the site is in ${output}`);

import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type MarkdownLink, ROOT, anchorsOf, markdownFiles, mentionedPaths, relativeLinks } from './markdown-files';

const FILES = markdownFiles();

/** The files in npm's tarball, relative to the root. */
function packedFiles(): ReadonlySet<string> {
  const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error'], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, npm_config_offline: 'true' },
  });
  const [tarball] = JSON.parse(output) as readonly { readonly files: readonly { readonly path: string }[] }[];
  return new Set(tarball!.files.map(({ path }) => path));
}

/** Whether the tarball holds the file, or a file of the folder. */
function isPacked(path: string, packed: ReadonlySet<string>): boolean {
  const folder = path.endsWith('/') ? path : `${path}/`;
  return packed.has(path) || [...packed].some((file) => file.startsWith(folder));
}

function written({ from, target }: MarkdownLink): string {
  return `${from}: ${target}`;
}

function isBroken({ path, anchor }: MarkdownLink): boolean {
  const file = join(ROOT, path);
  if (!existsSync(file)) return true;
  return anchor !== undefined && (statSync(file).isDirectory() || !anchorsOf(path).has(anchor));
}

describe('the Markdown files', () => {
  it('include the README and the documentation', () => {
    expect(FILES).toEqual(expect.arrayContaining(['README.md', 'docs/operations.md', 'test/README.md']));
  });

  it('have relative links that lead to files and headings', () => {
    const links = FILES.flatMap(relativeLinks);

    expect(links.length).toBeGreaterThan(20);
    expect(links.filter(isBroken).map(written)).toEqual([]);
  });

  it('in docs/ are all in its index', () => {
    const indexed = new Set(relativeLinks('docs/README.md').map(({ path }) => path));

    expect(FILES.filter((file) => /^docs\/(?!README)/.test(file) && !indexed.has(file))).toEqual([]);
  });

  it('name only files and folders that exist', () => {
    const missing = FILES.flatMap((file) =>
      mentionedPaths(file)
        .filter((path) => !existsSync(join(ROOT, path)))
        .map((path) => `${file}: ${path}`),
    );

    expect(missing).toEqual([]);
  });

  it('have relative links to packed files only, where they are packed themselves', () => {
    const packed = packedFiles();
    const unpacked = FILES.filter((file) => packed.has(file))
      .flatMap(relativeLinks)
      .filter(({ path }) => !isPacked(path, packed));

    expect(packed).toContain('README.md');
    expect(unpacked.map(written)).toEqual([]);
  });
});

describe('the anchors of a Markdown file', () => {
  it('are the headings in lower case, without punctuation, with hyphens', () => {
    expect(anchorsOf('test/README.md')).toContain('faults-of-the-key-value-store');
  });
});

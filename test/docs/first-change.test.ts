import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, readMarkdown } from './markdown-files';

/** A row of a table: a file, and what the example has there, with the texts that must be in the file as code. */
const ROW = /^\| `(?<file>[^`]+)` \| (?<what>.+) \|$/gm;
const CODE_SPAN = /`(?<text>[^`]+)`/g;
const NOT_IN_THE_FILE = /^npm run /;

interface Row {
  readonly file: string;
  readonly texts: readonly string[];
}

function rowsOf(heading: string): readonly Row[] {
  const [, section = ''] = new RegExp(`^### ${heading}\\n(.*?)^##`, 'ms').exec(readMarkdown('CONTRIBUTING.md')) ?? [];
  return Array.from(section.matchAll(ROW), ({ groups }) => ({
    file: groups!['file']!,
    texts: Array.from(groups!['what']!.matchAll(CODE_SPAN), ([, text]) => text!).filter(
      (text) => !NOT_IN_THE_FILE.test(text),
    ),
  }));
}

/** The files of src/ that a developer writes. */
const SOURCES = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .map((path) => `src/${path}`)
  .filter((path) => path.endsWith('.ts') && !path.startsWith('src/gen/'));

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

describe.each([
  ['A field of a rule', 'enforce_percent', 12],
  ['An algorithm', 'sliding_window', 4],
])('the files of "%s" in CONTRIBUTING', (heading, example, most) => {
  const rows = rowsOf(heading);

  it('have what the walk says', () => {
    const missing = rows.flatMap(({ file, texts }) => {
      const content = read(file);
      return texts.filter((text) => !content.includes(text)).map((text) => `${file}: ${text}`);
    });

    expect(missing).toEqual([]);
    expect(rows.filter(({ texts }) => texts.length === 0)).toEqual([]);
  });

  it(`are all of src that name ${example} in any spelling, at most ${most}`, () => {
    const name = new RegExp(example.replace('_', '[_-]?'), 'i');
    const named = SOURCES.filter((file) => name.test(read(file)));

    expect(rows.flatMap(({ file }) => (file.startsWith('src/') ? [file] : [])).toSorted()).toEqual(named.toSorted());
    expect(named.length).toBeLessThanOrEqual(most);
  });
});

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, readMarkdown } from './markdown-files';

const SECTION = /^## Log lines that need action\n(?<section>.*?)^## /ms;

/** The lines in the table of docs/operations.md, each cut at its varying parts. */
function documentedLines(): readonly (readonly string[])[] {
  const { section = '' } = SECTION.exec(readMarkdown('docs/operations.md'))?.groups ?? {};
  const cells = Array.from(
    section.matchAll(/^\| (?:fatal|error|warning) \| (?<lines>.*?) \| /gm),
    ({ groups }) => groups!.lines!,
  );
  return cells.flatMap((cell) =>
    Array.from(cell.matchAll(/`([^`]+)`/g), ([, line]) => line!.split('…').filter((part) => part.length > 1)),
  );
}

function sources(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => readFileSync(join(ROOT, folder, path), 'utf8'));
}

test('every log line in docs/operations.md is written by the code', () => {
  const lines = documentedLines();
  const texts = sources('src');
  const unknown = lines.filter((parts) => !texts.some((text) => parts.every((part) => text.includes(part))));

  expect(lines.length).toBeGreaterThan(15);
  expect(unknown).toEqual([]);
});

test('every line about the life of the service and at level debug in docs/operations.md is written by the code', () => {
  const [, logs = ''] = /^\*\*Logs\*\*(.*?)^## /ms.exec(readMarkdown('docs/operations.md')) ?? [];
  const lines = Array.from(logs.matchAll(/^\| `([^`]+)` \| /gm), ([, line]) => line!.replace(/…$/, ''));
  const texts = sources('src');

  expect(lines.length).toBeGreaterThan(9);
  expect(lines.filter((line) => !texts.some((text) => text.includes(line)))).toEqual([]);
});

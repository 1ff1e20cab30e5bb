import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, posix, resolve } from 'node:path';

export const ROOT = resolve(__dirname, '../..');

const SKIPPED = new Set(['node_modules', 'dist', 'coverage', 'release']);
const LINK = /(?<!!)\[[^\]]*\]\((?<target>[^)\s]+)\)/g;
const FENCED = /^(?<fence>```+).*?^\k<fence>/gms;
const CODE_SPAN = /`[^`\n]+`/g;

/** A link from one file of the project to another, or within one. */
export interface MarkdownLink {
  /** The file with the link, relative to the root. */
  readonly from: string;
  readonly target: string;
  /** The file or folder that the link points to, relative to the root. */
  readonly path: string;
  /** Without `#`; undefined when the link has none. */
  readonly anchor: string | undefined;
}

/** The Markdown files of the project, relative to its root, with `/`. */
export function markdownFiles(folder = ''): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name);
    if (entry.isDirectory()) return entry.name.startsWith('.') || SKIPPED.has(entry.name) ? [] : markdownFiles(path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}

/** The links of a file that lead to no other site. */
export function relativeLinks(from: string): readonly MarkdownLink[] {
  const text = readMarkdown(from).replaceAll(FENCED, '').replaceAll(CODE_SPAN, 'code');
  const targets = Array.from(text.matchAll(LINK), ({ groups }) => groups!.target!);
  return targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path = '', anchor] = target.split('#');
      return { from, target, anchor, path: path === '' ? from : posix.join(dirname(from), decodeURI(path)) };
    });
}

/** The anchors of a file's headings, as GitHub derives them. */
export function anchorsOf(file: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of readMarkdown(file)
    .replaceAll(FENCED, '')
    .matchAll(/^#{1,6} (.*)$/gm)) {
    const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
    const slug = text
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let number = 1; anchors.has(anchor); number += 1) anchor = `${slug}-${number}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** The names of files and folders of the project that a file mentions as code, such as `src/main.ts`. */
export function mentionedPaths(file: string): readonly string[] {
  const spans = readMarkdown(file).replaceAll(FENCED, '').match(CODE_SPAN) ?? [];
  return spans
    .map((span) => span.slice(1, -1))
    .filter((text) => /^(?:src|test|marbles|bench|docs|examples|proto|schema|scripts)\/[\w./-]*$/.test(text));
}

export function readMarkdown(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

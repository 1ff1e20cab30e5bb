import { readMarkdown } from './markdown-files';

/** A fenced block of a Markdown file. */
export interface CodeBlock {
  /** The file and the line of the opening fence, such as `docs/rules.md:12`. */
  readonly place: string;
  /** The info string of the fence, such as `yaml`; empty without one. */
  readonly language: string;
  readonly text: string;
  /** The comment directly above the block (`<!-- … -->`); empty without one. */
  readonly comment: string;
  /** Whether only blank lines are between the block before and this one. */
  readonly follows: boolean;
}

const BLOCK = /(?:^<!-- (?<comment>[^\n]*?) -->\n+)?^(?<fence>```+)(?<language>[^\n`]*)\n(?<text>.*?)^\k<fence>$/gms;

/** The fenced blocks of a file, in their order. Blocks that are indented, in lists, are not found. */
export function codeBlocksOf(file: string): readonly CodeBlock[] {
  const markdown = readMarkdown(file);
  let end = 0;
  return Array.from(markdown.matchAll(BLOCK), ({ index, 0: all, groups }) => {
    const start = index + all.indexOf('```');
    const follows = end > 0 && markdown.slice(end, start).trim() === '';
    end = index + all.length;
    return {
      place: `${file}:${markdown.slice(0, start).split('\n').length}`,
      language: groups!['language']!,
      text: groups!['text']!,
      comment: groups!['comment'] ?? '',
      follows,
    };
  });
}

import { type CodeBlock, codeBlocksOf } from './code-blocks';
import { markdownFiles } from './markdown-files';

/** How a test treats a block of commands. The comment directly above the block says it: `<!-- test: … -->`. */
export type Treatment =
  | { readonly kind: 'run' }
  /** A program that runs until the end of the page; `instead`: of the one that was started before. */
  | { readonly kind: 'keep'; readonly instead: boolean }
  | { readonly kind: 'not run'; readonly reason: string };

export interface ShellBlock extends CodeBlock {
  readonly treatment: Treatment;
  /** What the page shows as the output of the block; undefined if it shows none. */
  readonly output: string | undefined;
}

const SHELL = ['sh', 'console', 'bash', 'shell'];
const OUTPUT = ['', 'json', 'text'];
const KEEP = 'test: keeps running';
const NOT_RUN = 'test: not run: ';

/** The pages whose commands are run. */
export function pagesWithCommands(): readonly string[] {
  const pages = markdownFiles().filter((file) => /^(?:[A-Z]+\.md$|docs\/|examples\/|deploy\/)/.test(file));
  return pages.filter((page) => page !== 'CONTRIBUTING.md' && shellBlocksOf(page).length > 0);
}

export function shellBlocksOf(page: string): readonly ShellBlock[] {
  const blocks = codeBlocksOf(page);
  return blocks.flatMap((block, index) => {
    if (!SHELL.includes(block.language)) return [];
    const next = blocks[index + 1];
    const isOutput = next !== undefined && OUTPUT.includes(next.language) && next.follows;
    return [{ ...block, treatment: treatmentOf(block), output: isOutput ? next.text : undefined }];
  });
}

function treatmentOf({ comment, place }: CodeBlock): Treatment {
  if (!comment.startsWith('test: ')) return { kind: 'run' };
  if (comment === KEEP) return { kind: 'keep', instead: false };
  if (comment === `${KEEP}, instead of the one before`) return { kind: 'keep', instead: true };
  if (comment.startsWith(NOT_RUN)) return { kind: 'not run', reason: comment.slice(NOT_RUN.length) };
  throw new Error(`${place}: a comment that the test of commands does not know: ${comment}`);
}

/** A text whose numbers and durations, which vary from run to run, are replaced by signs. */
export function withoutNumbers(text: string): string {
  return text
    .replaceAll(/\b(?:\d+[hms])+\b/g, '#s')
    .replaceAll(/\d+/g, '#')
    .trim();
}

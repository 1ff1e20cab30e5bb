import { useEffect, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { Failure } from './parts';
import { ApiError } from './api';
import { addressOf, route } from './route';
import { useStore } from './store';

/** A section of a page of the documentation, which the service has with it: `docs/runbook.md#weirstoreaway`. */
export function HelpPage() {
  const { parameters } = useStore(route);
  const of = parameters.get('of') ?? 'docs/runbook.md';
  const [path = '', anchor = ''] = of.split('#', 2);
  const [page, setPage] = useState<{ readonly text?: string; readonly error?: ApiError }>({});
  useEffect(() => {
    setPage({});
    fetch(path)
      .then(async (response) => {
        if (!response.ok) throw new ApiError(`the service does not have ${path}`, response.status);
        setPage({ text: await response.text() });
      })
      .catch((error: Error) => setPage({ error: new ApiError(error.message, 0) }));
  }, [path]);
  if (page.error !== undefined) return <Failure error={page.error} />;
  if (page.text === undefined) return <p class="empty">Loading…</p>;
  return (
    <article class="card prose">
      <h1>What to do</h1>
      {blocksOf(sectionOf(page.text, anchor)).map((block, index) => (
        <Block key={index} block={block} path={path} />
      ))}
      {anchor !== '' && (
        <p>
          <a href={addressOf('help', { of: path })}>The whole page</a>
        </p>
      )}
    </article>
  );
}

/** From the heading with an anchor to the next one of its level or a higher one; without it, everything. */
function sectionOf(text: string, anchor: string): readonly string[] {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => /^#+ /.test(line) && anchorOf(line) === anchor);
  if (start === -1) return lines;
  const level = /^#+/.exec(lines[start]!)![0].length;
  const end = lines.findIndex((line, index) => index > start && (/^(#+) /.exec(line)?.[1]!.length ?? 9) <= level);
  return lines.slice(start, end === -1 ? undefined : end);
}

function anchorOf(heading: string): string {
  const words = heading.replace(/^#+ /, '').toLowerCase();
  return words.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-');
}

/** The lines of a paragraph, an item of a list, a row of a table, a heading or a block of code. */
interface TextBlock {
  readonly kind: 'text' | 'item' | 'row' | 'heading' | 'code';
  readonly text: string;
}

function blocksOf(lines: readonly string[]): readonly TextBlock[] {
  const blocks: TextBlock[] = [];
  let isCode = false;
  let isNew = true;
  function add(kind: TextBlock['kind'], text: string): void {
    blocks.push({ kind, text });
    isNew = false;
  }
  for (const line of lines) {
    const last = blocks.at(-1);
    if (line.startsWith('```')) {
      isCode = !isCode;
      if (isCode) add('code', '');
      isNew = true;
    } else if (isCode) blocks[blocks.length - 1] = { kind: 'code', text: `${last!.text}${line}\n` };
    else if (line.trim() === '' || /^\||^#+ /.test(line)) {
      isNew = true;
      if (line.startsWith('#')) add('heading', line.replace(/^#+ /, ''));
      else if (line.startsWith('|') && !/^\|[-| ]+$/.test(line)) add('row', line.replaceAll(/^\||\|$/g, ''));
      isNew = true;
    } else if (/^(?:-|\d+\.) /.test(line)) add('item', line.replace(/^\S+ /, ''));
    else if (isNew) add('text', line);
    else blocks[blocks.length - 1] = { ...last!, text: `${last!.text} ${line.trim()}` };
  }
  return blocks;
}

function Block({ block: { kind, text }, path }: { readonly block: TextBlock; readonly path: string }) {
  if (kind === 'code') return <pre tabIndex={0}>{text}</pre>;
  const content = <Inline text={text} path={path} />;
  if (kind === 'heading') return <h2>{content}</h2>;
  return kind === 'text' ? <p>{content}</p> : <p class={kind}>{content}</p>;
}

const PARTS = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)/g;

/** Text with code, emphasis and links. */
function Inline({ text, path }: { readonly text: string; readonly path: string }) {
  const shown: (string | VNode)[] = [];
  let end = 0;
  for (const { index, 0: whole, 1: code, 2: strong, 3: label, 4: target } of text.matchAll(PARTS)) {
    shown.push(text.slice(end, index));
    if (code !== undefined) shown.push(<code>{code}</code>);
    else if (strong !== undefined) shown.push(<b>{strong}</b>);
    else shown.push(<Reference label={label!} target={target!} path={path} />);
    end = index + whole.length;
  }
  return (
    <>
      {shown}
      {text.slice(end)}
    </>
  );
}

/** Pages that are not in the console are only named. */
function Reference({
  label,
  target,
  path,
}: {
  readonly label: string;
  readonly target: string;
  readonly path: string;
}) {
  const text = <Inline text={label} path={path} />;
  if (target.startsWith('#')) return <a href={addressOf('help', { of: path + target })}>{text}</a>;
  if (/^(?:runbook|operations|operations-reference|operators-api)\.md/.test(target)) {
    return <a href={addressOf('help', { of: `docs/${target}` })}>{text}</a>;
  }
  return <span title={target}>{text}</span>;
}

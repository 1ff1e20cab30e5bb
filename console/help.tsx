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
function sectionOf(text: string, anchor: string): string {
  const headings = [...text.matchAll(/^(#+) (.*)$/gm)];
  const start = headings.find(([, , title]) => anchorOf(title!) === anchor);
  if (start === undefined) return text;
  const end = headings.find(({ index, 1: level }) => index > start.index && level!.length <= start[1]!.length);
  return text.slice(start.index, end?.index);
}

function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

/** Blocks of code, and between them headings, rows of tables, items of lists and paragraphs. */
function blocksOf(text: string): readonly string[] {
  return text.split(/^(```.*\n[^]*?^```)$/m).flatMap((part) => {
    return part.startsWith('```') ? [part] : part.split(/\n\n+|\n(?=[#|]|- |\d+\. )/).map((block) => block.trim());
  });
}

function Block({ block, path }: { readonly block: string; readonly path: string }) {
  if (block.startsWith('```')) return <pre tabIndex={0}>{block.replaceAll(/^```.*\n?/gm, '')}</pre>;
  if (block === '' || /^\|[-| ]+$/.test(block)) return <></>;
  const content = <Inline text={block.replace(/^#+ |^- |^\d+\. |^\|/, '').replace(/\|$/, '')} path={path} />;
  if (block.startsWith('#')) return <h2>{content}</h2>;
  const kind = block.startsWith('|') ? 'row' : /^(?:-|\d+\.) /.test(block) ? 'item' : undefined;
  return <p class={kind}>{content}</p>;
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

interface ReferenceProps {
  readonly label: string;
  readonly target: string;
  readonly path: string;
}

/** Pages that are not in the console are only named. */
function Reference({ label, target, path }: ReferenceProps) {
  const text = <Inline text={label} path={path} />;
  if (target.startsWith('#')) return <a href={addressOf('help', { of: path + target })}>{text}</a>;
  if (/^(?:runbook|operations|operations-reference|operators-api)\.md/.test(target)) {
    return <a href={addressOf('help', { of: `docs/${target}` })}>{text}</a>;
  }
  return <span title={target}>{text}</span>;
}

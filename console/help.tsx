import type { VNode } from 'preact';
import { ApiError, useReading } from './api';
import { PageBar } from './page-bar';
import { Table, answered } from './parts';
import { addressOf, useParameter } from './route';
import { Link } from './text';

/** A section of a page of the documentation, which the service has with it: `docs/runbook.md#weirstoreaway`. */
export function HelpPage() {
  const [path = '', anchor = ''] = (useParameter('of') || 'docs/runbook.md').split('#', 2);
  const page = useReading(path, async () => {
    const response = await fetch(path);
    if (response.ok) return await response.text();
    throw new ApiError(`the service does not have ${path}`, response.status);
  });
  return (
    <>
      <PageBar
        title="What to do"
        text={anchor !== '' && <Link href={addressOf('help', { of: path })} text="The whole page" />}
      />
      {answered(page, (text) => (
        <article class="card prose">
          {blocksOf(sectionOf(text, anchor)).map((block, index) => blockOf(block, index, path))}
        </article>
      ))}
    </>
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

/** Blocks of code, and between them headings, tables, items of lists and paragraphs. */
function blocksOf(text: string): readonly string[] {
  return text.split(/^(```.*\n[^]*?^```)$/m).flatMap((part) => {
    return part.startsWith('```') ? [part] : part.split(/\n\n+|\n(?=#|- |\d+\. )/).map((block) => block.trim());
  });
}

function blockOf(block: string, key: number, path: string) {
  if (block === '') return undefined;
  if (block.startsWith('```'))
    return (
      <pre key={key} tabIndex={0}>
        {block.replaceAll(/^```.*\n?/gm, '')}
      </pre>
    );
  if (block.startsWith('|')) return tableOf(block, key, path);
  const content = inline(block.replace(/^#+ |^- |^\d+\. /, ''), path);
  if (block.startsWith('#')) return <h2 key={key}>{content}</h2>;
  return (
    <p key={key} class={/^(?:-|\d+\.) /.test(block) ? 'item' : undefined}>
      {content}
    </p>
  );
}

function tableOf(block: string, key: number, path: string) {
  const lines = block.split('\n').map((line) =>
    line
      .slice(2, -1)
      .split(/ \|(?: |$)/)
      .map((cell) => inline(cell, path)),
  );
  const [titles = [], , ...rows] = lines;
  const columns = titles.map((content) => ({ kind: '', content }));
  return <Table key={key} title="Of the page" columns={columns} rows={rows.map((cells, at) => ({ key: at, cells }))} />;
}

const PARTS = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)/g;

/** Text with code, emphasis and links. */
function inline(text: string, path: string): readonly (string | VNode)[] {
  const parts: (string | VNode)[] = [];
  let end = 0;
  for (const { index, 0: whole, 1: code, 2: strong, 3: label, 4: target } of text.matchAll(PARTS)) {
    parts.push(text.slice(end, index));
    if (code !== undefined) parts.push(<code>{code}</code>);
    else if (strong !== undefined) parts.push(<b>{strong}</b>);
    else parts.push(referenceTo(target!, inline(label!, path), path));
    end = index + whole.length;
  }
  return [...parts, text.slice(end)];
}

/** Pages that are not in the console are only named. */
function referenceTo(target: string, label: readonly (string | VNode)[], path: string): VNode {
  const isKnown = /^(?:#|(?:runbook|operations|operations-reference|operators-api)\.md)/.test(target);
  if (!isKnown) return <span title={target}>{label}</span>;
  return <a href={addressOf('help', { of: target.startsWith('#') ? path + target : `docs/${target}` })}>{label}</a>;
}

import { createHash } from 'node:crypto';
import { counted } from '../../text/counted';
import { visibleLine } from '../../text/visible';
import { COMPARED, type ReplayReport, callersTitle } from './report';
import { COLUMNS, type Counts, type RuleFigures, countsOf } from './tally';

const STYLE = `
  :root { color-scheme: light dark; --calls: #8888; --before: #5b8def; --after: #e08a2c }
  body { font: 1rem/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
  table { border-collapse: collapse; width: 100% }
  th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #8884; vertical-align: top }
  th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; font-family: ui-monospace, monospace }
  svg { display: block; width: 100%; height: auto }
  .calls { fill: var(--calls) } .before { fill: var(--before) } .after { fill: var(--after) }
  line { stroke: #8888 } text { font-size: 12px; fill: currentColor }
`;
const CALLS_BY_TIME = 'Calls by time, and how many of them are denied before and after';
/** The page may show nothing but itself, whatever is in its texts. */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`;

/** A page of HTML that needs no other file, with a chart of the denied calls by time and one of the rules. */
export function replayPage(report: ReplayReport): string {
  const { from, to, total, rules, notes, before } = report;
  const items = notes.map((note) => `<li>${escaped(note)}</li>`).join('\n');
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width">
<title>Replay of a decision log</title>
<style>${STYLE}</style>
<h1>Replay of a decision log</h1>
<p>${counted(total.calls, 'call')} from ${from} to ${to}, compared with ${COMPARED[before]}:
${total.newlyDenied} newly denied, ${total.newlyAllowed} newly allowed.</p>
${items === '' ? '' : `<ul>\n${items}\n</ul>\n`}<h2>Denied calls by time</h2>
${timeChart(report)}
<h2>Rules</h2>
${figureTable('Rule', [...rules.map((rule) => [rule.rule, rule] as const), ['all calls', total]], total.calls)}
<h2>Callers</h2>
${rules.map(callersOf).join('')}</html>`;
}

function callersOf(row: RuleFigures): string {
  if (row.callers.length === 0) return '';
  const callers = row.callers.map((caller) => [caller.caller, caller] as const);
  return (
    `<details open><summary>${escaped(callersTitle(row))}</summary>\n` +
    `${figureTable('Caller', callers, row.calls)}\n</details>\n`
  );
}

/** @param most the calls of a bar of full length */
function figureTable(name: string, rows: readonly (readonly [name: string, counts: Counts])[], most: number): string {
  const head = [name, ...Object.values(COLUMNS), 'Denied before and after'].map((text) => `<th>${text}</th>`).join('');
  const body = rows.map(([text, counts]) => {
    const cells = countsOf(counts).map((count) => `<td>${count}</td>`);
    return `<tr><td>${escaped(text)}</td>${cells.join('')}<td>${bars(counts, most)}</td></tr>`;
  });
  return `<table>\n<tr>${head}</tr>\n${body.join('\n')}\n</table>`;
}

const BAR = 160;

function bars(counts: Counts, most: number): string {
  const [all, before, after] = [counts.calls, ...deniedOf(counts)].map((count) => ((count / most) * BAR).toFixed(1));
  return (
    `<svg viewBox="0 0 ${BAR} 16" width="${BAR}" aria-hidden="true">` +
    `<rect class="calls" width="${all}" height="16"/><rect class="before" width="${before}" height="7"/>` +
    `<rect class="after" y="8" width="${after}" height="7"/></svg>`
  );
}

function deniedOf({ calls, allowedBefore, allowedAfter }: Counts): readonly [before: number, after: number] {
  return [calls - allowedBefore, calls - allowedAfter];
}

const [WIDTH, HEIGHT, TOP] = [960, 200, 20];

/** Columns of calls, and in front of them those that were denied before and after. */
function timeChart({ timeline, from, to }: ReplayReport): string {
  const most = Math.max(...timeline.map(({ figures }) => figures.calls));
  const step = WIDTH / timeline.length;
  const columns = timeline.map(({ start, figures }, index) => {
    const x = index * step;
    const [before, after] = deniedOf(figures);
    const shown = [
      column('calls', x, step * 0.9, figures.calls / most),
      column('before', x, step * 0.45, before / most),
      column('after', x + step * 0.45, step * 0.45, after / most),
    ];
    return (
      `<g><title>${start}: ${figures.calls} calls, ${before} denied before, ${after} after</title>` +
      `${shown.join('')}</g>`
    );
  });
  const bottom = TOP + HEIGHT;
  return `<svg viewBox="0 0 ${WIDTH} ${bottom + 20}" role="img" aria-label="${CALLS_BY_TIME}">
<text y="14">${most} calls</text>${legend()}
${columns.join('\n')}
<line x1="0" y1="${bottom}" x2="${WIDTH}" y2="${bottom}"/>
<text y="${bottom + 15}">${from}</text><text x="${WIDTH}" y="${bottom + 15}" text-anchor="end">${to}</text>
</svg>`;
}

function column(...[name, x, width, share]: [string, number, number, number]): string {
  const height = share * HEIGHT;
  return (
    `<rect class="${name}" x="${x.toFixed(1)}" y="${(TOP + HEIGHT - height).toFixed(1)}" ` +
    `width="${width.toFixed(1)}" height="${height.toFixed(1)}"/>`
  );
}

function legend(): string {
  const entries = [
    ['calls', 'all calls'],
    ['before', 'denied before'],
    ['after', 'denied after'],
  ];
  return entries
    .map(([name, text], index) => {
      const x = WIDTH - 360 + index * 120;
      return `<rect class="${name}" x="${x}" y="4" width="12" height="12"/><text x="${x + 16}" y="14">${text}</text>`;
    })
    .join('');
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** A text of callers or rules as it is shown. */
function escaped(text: string): string {
  return visibleLine(text).replaceAll(/[&<>"']/g, (character) => ESCAPES[character]!);
}

import { setImmediate as nextTurn } from 'node:timers/promises';
import { plainNumber } from '../../text/plain-number';
import { visibleLine } from '../../text/visible';
import { GET, type Route, textPage } from '../listener';

/** The lines of an index: what it says of a route, and of the same route with other query parameters. */
export interface IndexLine extends Pick<Route, 'path' | 'description'> {
  /** The fields of a form; a route with one needs POST. */
  readonly form?: readonly string[];
}

/** Lists routes: as HTML with links for clients that prefer it, else as text. */
export function indexPage(path: string, title: string, lines: readonly IndexLine[]): Route {
  return {
    path,
    allow: GET,
    handle: (ctx) => {
      ctx.vary('Accept');
      const isHtml = ctx.accepts('text/plain', 'text/html') === 'text/html';
      ctx.type = isHtml ? 'text/html' : 'text/plain';
      ctx.body = isHtml ? asHtml(title, lines) : asText(title, lines);
    },
  };
}

function asText(title: string, lines: readonly IndexLine[]): string {
  const width = Math.max(...lines.map((line) => requestOf(line).length));
  const rows = lines.map((line) => `${requestOf(line).padEnd(width)}  ${line.description}`);
  return [title, '', ...rows, ''].join('\n');
}

function requestOf({ path, form }: IndexLine): string {
  return form === undefined ? path : `POST ${path}`;
}

function asHtml(title: string, lines: readonly IndexLine[]): string {
  const rows = lines.map((line) => `<dt>${asLink(line)}</dt><dd>${line.description}</dd>`);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>
  body { font: 1rem/1.5 system-ui, sans-serif; max-width: 48rem; margin: 3rem auto; padding: 0 1rem }
  dt { font-family: ui-monospace, monospace; margin-top: 1rem }
  dd { margin: 0 }
</style>
<h1>${title}</h1>
<dl>
${rows.join('\n')}
</dl>
</html>
`;
}

function asLink({ path, form }: IndexLine): string {
  if (form === undefined) return `<a href="${path}">${path}</a>`;
  const fields = form.map((name) => {
    const type = name === 'token' ? 'password' : 'text';
    return `<input name="${name}" type="${type}" placeholder="${name}" size="10" autocomplete="off">`;
  });
  return `<form method="post" action="${path}"><button>${path}</button> ${fields.join(' ')}</form>`;
}

/** The origin of the active rules, human-readable. */
export interface RulesInfo {
  /** The active rules; undefined before the first successful load. */
  readonly loaded: { readonly source: string; readonly version: string; readonly at: Date } | undefined;
  /** The last load after that, if it was rejected; undefined when the active rules are the latest. */
  readonly rejected: { readonly reason: string; readonly at: Date } | undefined;
}

/** The line of each active rule, in any order; each part in a turn of the event loop of its own. */
export type ReadRules = () => AsyncIterable<readonly string[]>;

/** `/rlconfig`: the origin of the active rules as comment lines, then one line per rule, sorted. */
export function rlconfig(info: () => RulesInfo, rules: ReadRules): Route {
  return longPage('/rlconfig', 'the active rules, one per line, and their origin', async function* lines() {
    yield originLines(info());
    yield* sortedInTurns(rules(), (line) => line);
  });
}

function originLines({ loaded, rejected }: RulesInfo): string[] {
  const lines =
    loaded === undefined
      ? ['no configuration loaded yet']
      : [`from ${loaded.source}`, `version ${loaded.version}`, `loaded ${loaded.at.toISOString()}`];
  if (rejected !== undefined) {
    lines.push(`load rejected ${rejected.at.toISOString()}, keeping the active rules:`);
    for (const line of rejected.reason.split(/\r?\n/)) lines.push(`  ${line}`);
  }
  return lines.map((line) => `# ${line}`);
}

/** The name and the current value of a statistic. */
export type Statistic = readonly [name: string, value: number];

/** Every statistic, in any order; each part in a turn of the event loop of its own. */
export type ReadStatistics = () => AsyncIterable<readonly Statistic[]>;

/** `/stats`: one line `name: value` per statistic, sorted by name. */
export function stats(statistics: ReadStatistics): Route {
  return longPage('/stats', 'the current value of every statistic, one per line', async function* lines() {
    for await (const part of sortedInTurns(statistics(), ([name]) => name)) {
      yield part.map(([name, value]) => `${name}: ${plainNumber(value)}`);
    }
  });
}

/**
 * A page whose text is long. It is generated once at a time, however many callers ask for it: those that ask while it is generated share
 * the next one, because what they see must not be older than their request.
 *
 * @param generate the lines, in parts, each in a turn of the event loop of its own
 */
function longPage(path: string, description: string, generate: () => AsyncIterable<readonly string[]>): Route {
  /** Ends with the page that is generated now, or with the next one. */
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<string> | undefined;
  async function joined(): Promise<string> {
    await last;
    next = undefined;
    const parts: string[] = [];
    for await (const part of generate()) parts.push(part.map((line) => `${visibleLine(line)}\n`).join(''));
    return parts.join('');
  }
  return textPage(path, description, () => {
    if (next === undefined) {
      next = joined();
      last = next.catch(() => undefined);
    }
    return next;
  });
}

/** Items that are merged, or yielded, in one turn of the event loop: less than a millisecond. */
const PER_TURN = 1_000;

/**
 * Sorts items, which arrive in parts, by their keys, and yields them in parts. Keys are compared by code units. The event loop turns
 * between the steps, so that a long list does not delay decisions.
 */
async function* sortedInTurns<T>(
  parts: AsyncIterable<readonly T[]>,
  keyOf: (item: T) => string,
): AsyncIterableIterator<readonly T[]> {
  let runs: (readonly T[])[] = [];
  for await (const part of parts) {
    runs.push(part.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : Number(keyOf(one) > keyOf(other)))));
  }
  while (runs.length > 1) {
    const merged: (readonly T[])[] = [];
    for (let i = 0; i < runs.length; i += 2) merged.push(await merge(runs[i]!, runs[i + 1] ?? [], keyOf));
    runs = merged;
  }
  const sorted = runs[0] ?? [];
  for (let i = 0; i < sorted.length; i += PER_TURN) {
    yield sorted.slice(i, i + PER_TURN);
    await nextTurn();
  }
}

async function merge<T>(one: readonly T[], other: readonly T[], keyOf: (item: T) => string): Promise<readonly T[]> {
  const merged: T[] = [];
  for (let i = 0, j = 0; i < one.length || j < other.length;) {
    const takesOne = j === other.length || (i < one.length && keyOf(one[i]!) <= keyOf(other[j]!));
    merged.push(takesOne ? one[i]! : other[j]!);
    if (takesOne) i += 1;
    else j += 1;
    if (merged.length % PER_TURN === 0) await nextTurn();
  }
  return merged;
}

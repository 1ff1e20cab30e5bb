import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Context } from 'koa';
import { inPieces } from '../../net/turns';
import type { StatisticGroup } from '../../statistics/statistics';
import { plainNumber } from '../../text/plain-number';
import { visibleLine } from '../../text/visible';
import { invalidRequest } from '../errors';
import { GET, type Route } from '../listener';

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
      const rows = lines.map((line) => `<dt>${asLink(path, line)}</dt><dd>${line.description}</dd>`).join('\n');
      respond(
        ctx,
        () => asText(title, lines),
        () => htmlPage(path, title, `<dl>\n${rows}\n</dl>`),
      );
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

/** As HTML for clients that prefer it, else as text. */
function respond(ctx: Context, text: () => string | Readable, html: () => string | Readable): void {
  ctx.vary('Accept');
  const isHtml = ctx.accepts('text/plain', 'text/html') === 'text/html';
  ctx.type = isHtml ? 'text/html' : 'text/plain';
  ctx.body = isHtml ? html() : text();
}

/** A page with links to the index and the console. */
function htmlPage(path: string, title: string, content: string): string {
  const links =
    path === '/'
      ? ''
      : `<p><a href="${relative(path, '/')}">index</a> <a href="${relative(path, '/console/')}">console</a></p>\n`;
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
${links}${content}
</html>
`;
}

/** A proxy may have the listener below any path. */
function relative(from: string, to: string): string {
  return '../'.repeat(from.split('/').length - 2) + to.slice(1) || './';
}

function asLink(page: string, { path, form }: IndexLine): string {
  const address = relative(page, path);
  if (form === undefined) return `<a href="${address}">${path}</a>`;
  const fields = form.map((name) => {
    const type = name === 'token' ? 'password' : 'text';
    return `<input name="${name}" type="${type}" placeholder="${name}" size="10" autocomplete="off">`;
  });
  return `<form method="post" action="${address}"><button>POST ${path}</button> ${fields.join(' ')}</form>`;
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
  const path = '/rlconfig';
  const text = shared(async () => {
    const parts = [linesText(originLines(info()))];
    for await (const part of sortedInTurns(rules(), (line) => line)) parts.push(linesText(part));
    return parts.join('');
  });
  return {
    path,
    description: 'the active rules, one per line, and their origin',
    allow: GET,
    handle: async (ctx) => respondLines(ctx, path, [await text()]),
  };
}

function linesText(lines: readonly string[]): string {
  return lines.map((line) => `${visibleLine(line)}\n`).join('');
}

/** Responds with lines in pieces, each of which is made when the caller has read most of those before. */
function respondLines(ctx: Context, path: string, pieces: AsyncIterable<string> | Iterable<string>): void {
  async function* html(): AsyncGenerator<string, void, void> {
    const [before = '', after = ''] = htmlPage(path, path, '<pre>\0</pre>').split('\0');
    yield before;
    for await (const piece of pieces) yield piece.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
    yield after;
  }
  respond(
    ctx,
    () => streamOf(pieces),
    () => streamOf(html()),
  );
}

function streamOf(pieces: AsyncIterable<string> | Iterable<string>): Readable {
  return Readable.from(pieces, { objectMode: false });
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

/** Every statistic, in groups in any order; each part in a turn of the event loop of its own. */
export type ReadStatistics = () => AsyncIterable<readonly StatisticGroup[]>;

/** How statistics are written: the beginning, each of them, what is between two, and the end. */
interface Format {
  readonly type: string;
  readonly begin: string;
  readonly write: (statistic: Statistic) => string;
  readonly between: string;
  readonly end: string;
}

/** As Envoy has them, and named so in its query. In that of Prometheus, the metrics page has labels, types and histograms, too. */
const FORMATS: Readonly<Record<string, Format>> = {
  text: lineFormat(([name, value]) => `${visibleLine(name)}: ${plainNumber(value)}\n`),
  json: {
    type: 'application/json',
    begin: '{"stats":[',
    write: ([name, value]) => JSON.stringify({ name, value }),
    between: ',',
    end: ']}\n',
  },
  prometheus: lineFormat(([name, value]) => `${metricName(name)} ${plainNumber(value)}\n`),
};

function metricName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_:]/g, '_');
}

function lineFormat(write: Format['write']): Format {
  return { type: 'text/plain', begin: '', write, between: '', end: '' };
}

/** Characters of an expression. */
const LONGEST_FILTER = 1_000;

/**
 * `/stats`: each statistic, sorted by name, in one of {@link FORMATS}, and with `filter` those alone whose name an expression is found in.
 * There may be a million of them, so only the groups are sorted before the page begins, and names are made when they are written.
 */
export function stats(statistics: ReadStatistics): Route {
  const path = '/stats';
  const [byName, byMetric] = [sortedGroups(statistics, (name) => name), sortedGroups(statistics, metricName)];
  return {
    path,
    description: 'the current value of every statistic, one per line; ?filter=<RE2>, ?format=json or prometheus',
    allow: GET,
    handle: async (ctx) => {
      const { format = 'text', filter = '' } = ctx.query;
      const chosen = Object.hasOwn(FORMATS, String(format)) ? FORMATS[String(format)] : undefined;
      if (chosen === undefined) throw invalidRequest(`format must be one of ${Object.keys(FORMATS).join(', ')}`);
      const isShown = await compileFilter(String(filter));
      const groups = await (chosen === FORMATS['prometheus'] ? byMetric() : byName());
      const pieces = inPieces(statisticsTexts(sortedStatistics(groups, isShown), chosen));
      if (chosen === FORMATS['text']) return respondLines(ctx, path, pieces);
      ctx.type = chosen.type;
      ctx.body = streamOf(pieces);
    },
  };
}

/** What statistics are sorted by, made of a name. */
type KeyOf = (name: string) => string;

interface SortedGroups {
  readonly keyOf: KeyOf;
  /** The groups with their keys, sorted by them. */
  readonly parts: readonly (readonly KeyedGroup[])[];
}

interface KeyedGroup {
  readonly key: string;
  readonly group: StatisticGroup;
}

function sortedGroups(statistics: ReadStatistics, keyOf: KeyOf): () => Promise<SortedGroups> {
  async function* keyed(): AsyncGenerator<readonly KeyedGroup[], void, void> {
    for await (const part of statistics()) yield part.map((group) => ({ key: keyOf(group.name), group }));
  }
  return shared(async () => {
    const parts: (readonly KeyedGroup[])[] = [];
    for await (const part of sortedInTurns(keyed(), ({ key }) => key)) parts.push(part);
    return { keyOf, parts };
  });
}

/** The statistics that are shown, sorted by their keys; the first by name of those with the same key; undefined for one that is left out. */
function* sortedStatistics(
  { keyOf, parts }: SortedGroups,
  isShown: (name: string) => boolean,
): Generator<Statistic | undefined, void, void> {
  /** Sorted. The names of a group begin with its own, so whatever is before the next group is before all that follow. */
  let waiting: { readonly key: string; readonly statistic: Statistic }[] = [];
  let last: string | undefined;
  function* before(key: string | undefined): Generator<Statistic | undefined, void, void> {
    const end = key === undefined ? -1 : waiting.findIndex((each) => each.key >= key);
    const ready = end === -1 ? waiting : waiting.slice(0, end);
    waiting = end === -1 ? [] : waiting.slice(end);
    for (const { key: own, statistic } of ready) {
      const isLeftOut = !isShown(statistic[0]) || own === last;
      if (!isLeftOut) last = own;
      yield isLeftOut ? undefined : statistic;
    }
  }
  for (const part of parts) {
    for (const { key, group } of part) {
      yield* before(key);
      for (const statistic of group.entries()) waiting.push({ key: keyOf(statistic[0]), statistic });
      waiting.sort((one, other) => order(one.key, other.key) || order(one.statistic[0], other.statistic[0]));
    }
  }
  yield* before(undefined);
}

/** By code units. */
function order(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

function* statisticsTexts(
  statistics: Iterable<Statistic | undefined>,
  { begin, write, between, end }: Format,
): Generator<string | undefined, void, void> {
  yield begin;
  let separator = '';
  for (const statistic of statistics) {
    yield statistic && separator + write(statistic);
    if (statistic !== undefined) separator = between;
  }
  yield end;
}

/** @throws HttpError for an expression that is not valid */
async function compileFilter(source: string): Promise<(name: string) => boolean> {
  if (source === '') return () => true;
  if (source.length > LONGEST_FILTER) throw invalidRequest(`filter has more than ${LONGEST_FILTER} characters`);
  // Loaded only when it is used.
  const { RE2JS, RE2JSException } = await import('re2js');
  try {
    const expression = RE2JS.compile(source);
    return (name) => expression.matcher(name).find();
  } catch (error) {
    if (error instanceof RE2JSException) throw invalidRequest(`invalid re2 regex: ${error.message}`, { cause: error });
    throw error;
  }
}

/**
 * Generates something long once at a time, however many callers ask for it: those that ask while it is generated share the next one,
 * because what they see must not be older than their request.
 */
function shared<T>(generate: () => Promise<T>): () => Promise<T> {
  /** Ends with what is generated now, or with the next one. */
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  async function generated(): Promise<T> {
    await last;
    next = undefined;
    return generate();
  }
  return () => {
    if (next === undefined) {
      next = generated();
      last = next.catch(() => undefined);
    }
    return next;
  };
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
    runs.push(part.toSorted((one, other) => order(keyOf(one), keyOf(other))));
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

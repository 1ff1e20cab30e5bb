import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Context } from 'koa';
import { inPieces, shared } from '../../net/turns';
import { ruleLines } from '../../rules/ruleset';
import type { StatisticGroup } from '../../statistics/statistics';
import type { CurrentConfig } from '../../streams/config';
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

/** `/rlconfig`: the origin of the active rules as comment lines, then one line per rule, sorted. */
export function rlconfig(config: () => CurrentConfig): Route {
  const path = '/rlconfig';
  const text = shared(async () => {
    const { loaded, rejected } = config();
    const rules = loaded === undefined ? [] : ruleLines(loaded.ruleset);
    const runs = await sortedRuns(rules, (line) => line);
    const pieces: string[] = [];
    for await (const piece of inPieces(rulesText({ loaded, rejected }, merged(runs)))) pieces.push(piece);
    return pieces.join('');
  });
  return {
    path,
    description: 'the active rules, one per line, and their origin',
    allow: GET,
    handle: async (ctx) => respondLines(ctx, path, [await text()]),
  };
}

function* rulesText(config: CurrentConfig, rules: Iterable<Keyed<string>>): Generator<string, void, void> {
  for (const line of originLines(config)) yield `# ${visibleLine(line)}\n`;
  for (const { item } of rules) yield `${visibleLine(item)}\n`;
}

function originLines({ loaded, rejected }: CurrentConfig): readonly string[] {
  const lines =
    loaded === undefined
      ? ['no configuration loaded yet']
      : [`from ${loaded.origin.source}`, `version ${loaded.origin.version}`, `loaded ${timeOf(loaded)}`];
  if (rejected === undefined) return lines;
  const reasons = rejected.reason.split(/\r?\n/).map((line) => `  ${line}`);
  const meanwhile = loaded === undefined ? 'none are active' : 'keeping the active rules';
  return [...lines, `load rejected ${timeOf(rejected)}, ${meanwhile}:`, ...reasons];
}

function timeOf({ at }: { readonly at: number }): string {
  return new Date(at).toISOString();
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

/** The name and the current value of a statistic. */
export type Statistic = readonly [name: string, value: number];

/** Every statistic, in groups in any order. */
export type ReadStatistics = () => Promise<Iterable<StatisticGroup>>;

/** How statistics are written. What yields undefined is left out, as statistics that are undefined are. */
interface Format {
  readonly type: string;
  readonly write: (statistics: Iterable<Statistic | undefined>) => Iterable<string | undefined>;
}

/**
 * As Envoy has them, and named so in its query. In that of Prometheus, the metrics page has labels, types and
 * histograms, too.
 */
const FORMATS: Readonly<Record<string, Format>> = {
  text: lineFormat(([name, value]) => `${visibleLine(name)}: ${plainNumber(value)}\n`),
  json: { type: 'application/json', write: jsonOf },
  prometheus: lineFormat(([name, value]) => `${metricName(name)} ${plainNumber(value)}\n`),
};

function metricName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_:]/g, '_');
}

function lineFormat(lineOf: (statistic: Statistic) => string): Format {
  return {
    type: 'text/plain',
    *write(statistics) {
      for (const statistic of statistics) yield statistic && lineOf(statistic);
    },
  };
}

function* jsonOf(statistics: Iterable<Statistic | undefined>): Generator<string | undefined, void, void> {
  let separator = '{"stats":[';
  for (const statistic of statistics) {
    yield statistic && `${separator}${JSON.stringify({ name: statistic[0], value: statistic[1] })}`;
    if (statistic !== undefined) separator = ',';
  }
  yield `${separator === ',' ? '' : separator}]}\n`;
}

/** Characters of an expression. */
const LONGEST_FILTER = 1_000;

/**
 * `/stats`: each statistic, sorted by name, in one of {@link FORMATS}, and with `filter` those alone whose name an
 * expression is found in. There may be a million of them, so only the groups are sorted before the page begins, and
 * names are made when they are written.
 */
export function stats(statistics: ReadStatistics): Route {
  const path = '/stats';
  const [byName, byMetric] = [(name: string) => name, metricName].map((keyOf) => ({
    keyOf,
    runs: shared(() => statistics().then((groups) => sortedRuns(groups, ({ name }) => keyOf(name)))),
  }));
  return {
    path,
    description: 'the current value of every statistic, one per line; ?filter=<RE2>, ?format=json or prometheus',
    allow: GET,
    handle: async (ctx) => {
      const { format = 'text', filter = '' } = ctx.query;
      const chosen = Object.hasOwn(FORMATS, String(format)) ? FORMATS[String(format)] : undefined;
      if (chosen === undefined) throw invalidRequest(`format must be one of ${Object.keys(FORMATS).join(', ')}`);
      const isShown = await compileFilter(String(filter));
      const { keyOf, runs } = (chosen === FORMATS['prometheus'] ? byMetric : byName)!;
      const sorted = sortedStatistics(merged(await runs()), keyOf, isShown);
      const pieces = inPieces(chosen.write(sorted));
      if (chosen === FORMATS['text']) return respondLines(ctx, path, pieces);
      ctx.type = chosen.type;
      ctx.body = streamOf(pieces);
    },
  };
}

/**
 * The statistics that are shown, sorted by their keys; the first by name of those with the same key; undefined for one
 * that is left out.
 */
function* sortedStatistics(
  groups: Iterable<Keyed<StatisticGroup>>,
  keyOf: (name: string) => string,
  isShown: (name: string) => boolean,
): Generator<Statistic | undefined, void, void> {
  /**
   * Sorted. The names of a group begin with its own, so whatever is before the next group is before all that follow.
   */
  let waiting: Keyed<Statistic>[] = [];
  let last: string | undefined;
  function* before(key: string | undefined): Generator<Statistic | undefined, void, void> {
    const end = key === undefined ? -1 : waiting.findIndex((each) => each.key >= key);
    const ready = end === -1 ? waiting : waiting.slice(0, end);
    waiting = end === -1 ? [] : waiting.slice(end);
    for (const { key: own, item } of ready) {
      const isLeftOut = !isShown(item[0]) || own === last;
      if (!isLeftOut) last = own;
      yield isLeftOut ? undefined : item;
    }
  }
  for (const { key, item: group } of groups) {
    yield* before(key);
    for (const item of group.entries()) waiting.push({ key: keyOf(item[0]), item });
    waiting.sort((one, other) => order(one.key, other.key) || order(one.item[0], other.item[0]));
  }
  yield* before(undefined);
}

/** By code units. */
function order(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
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

/** An item with what it is sorted by, by code units. */
interface Keyed<T> {
  readonly key: string;
  readonly item: T;
}

/** Items of a run, which is sorted in one turn of the event loop. */
const PER_RUN = 1_000;

async function sortedRuns<T>(
  items: Iterable<T>,
  keyOf: (item: T) => string,
): Promise<readonly (readonly Keyed<T>[])[]> {
  const runs: Keyed<T>[][] = [[]];
  for (const item of items) {
    if (runs.at(-1)!.push({ key: keyOf(item), item }) < PER_RUN) continue;
    runs.at(-1)!.sort(byKey);
    runs.push([]);
    await nextTurn();
  }
  runs.at(-1)!.sort(byKey);
  return runs;
}

function byKey(one: Keyed<unknown>, other: Keyed<unknown>): number {
  return order(one.key, other.key);
}

/**
 * The items of sorted runs, sorted. They are compared only when they are taken, so that a long list does not delay
 * decisions.
 */
function* merged<T>(runs: readonly (readonly Keyed<T>[])[]): Generator<Keyed<T>, void, void> {
  if (runs.length < 2) {
    yield* runs[0] ?? [];
    return;
  }
  const half = runs.length >> 1;
  const [one, other] = [merged(runs.slice(0, half)), merged(runs.slice(half))];
  let [next, alternative] = [one.next().value, other.next().value];
  while (next !== undefined || alternative !== undefined) {
    const takesOne = alternative === undefined || (next !== undefined && next.key <= alternative.key);
    yield (takesOne ? next : alternative) as Keyed<T>;
    if (takesOne) next = one.next().value;
    else alternative = other.next().value;
  }
}

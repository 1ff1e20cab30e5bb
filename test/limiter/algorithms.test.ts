import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LimiterOptions } from '../../src/limiter/options';
import type { Descriptor } from '../../src/limiter/request';
import { Code, type Verdict } from '../../src/limiter/verdict';
import type { RuleLimit } from '../../src/rules/rule-config';
import { unitByName } from '../../src/rules/unit';
import { descriptor } from '../support/data/requests';
import { type RuleSketch, limit } from '../support/data/rules';
import { call, hits, perMinute, serve } from './serve';

/** The columns of the table in docs/rules.md. */
const COLUMNS = ['fixed_window', 'sliding_window', 'token_bucket'] as const;
type Name = (typeof COLUMNS)[number];

/** A rule of 4 per minute for the key `k`, unless it says otherwise, and requests from the beginning of a minute on. */
interface Cell {
  readonly limit?: Partial<RuleLimit>;
  readonly rule?: Partial<RuleSketch>;
  readonly options?: Partial<LimiterOptions>;
  /**
   * Seconds that pass, `20s`, or a request and its answer: the hits of a call with `k=x` or of another descriptor, or
   * the limit that is sent with it; then code, remaining and seconds until the reset of each descriptor, and the
   * overall code if there are several.
   */
  readonly steps: string;
  /** Those of the rule that the steps have changed. */
  readonly statistics?: Readonly<Record<string, number>>;
  /** Of the last step. */
  readonly headers?: readonly string[];
}

/** A descriptor as a step has it: `3`, `3 k=y`, `k=y` or `5 per MINUTE`. */
function descriptorOf(text: string): Descriptor {
  const [, requests, unit] = /^(\d+) per (\w+)$/.exec(text) ?? [];
  if (unit !== undefined)
    return descriptor('k=x', { limit: { requestsPerUnit: Number(requests), unit: unitByName(unit) } });
  const [, count, own = 'k=x'] = /^(-?\d+)(?: (.+))?$/.exec(text) ?? [];
  return count === undefined ? descriptor(text) : hits(own, Number(count));
}

/** The cells of the three algorithms, which are steps alone or more, and what they have in common. */
type Row = readonly [fixed: Cell | string, sliding: Cell | string, bucket: Cell | string, common?: Omit<Cell, 'steps'>];

function cellOf(row: Row, name: Name): Cell {
  const cell = row[COLUMNS.indexOf(name)] as Cell | string;
  return { ...row[3], ...(typeof cell === 'string' ? { steps: cell } : cell) };
}

const SHARED: Omit<Cell, 'steps'> = { rule: { value: 'x*', shareThreshold: true } };
const LOCAL_CACHE: Omit<Cell, 'steps'> = { options: { localCacheBytes: 100_000 } };
const HEADERS: Omit<Cell, 'steps'> = {
  options: { responseHeaders: { limit: 'limit', remaining: 'remaining', reset: 'reset' } },
};
const SHADOWED = {
  ...{ total_hits: 6, within_limit: 4, near_limit: 1, over_limit: 2 },
  ...{ shadow_mode: 2, total_negative_hits: 2 },
};
const CACHED = { total_hits: 7, within_limit: 5, over_limit: 2, over_limit_with_local_cache: 1 };
/** By the names of the rows in docs/rules.md. A token flows into the bucket every 15 s. */
const TABLE: Readonly<Record<string, Row>> = {
  'A call over the limit': [
    '3 → OK 1 60 | 2 → OVER 0 60 | 1 → OVER 0 60',
    '3 → OK 1 120 | 2 → OVER 1 80 | 1 → OK 0 120',
    '3 → OK 1 45 | 2 → OVER 1 15 | 1 → OK 0 60',
  ],
  'More hits than fit at all': [
    '5 → OVER 0 60 | 1 → OVER 0 60',
    '5 → OVER 4 1 | 4 → OK 0 120 | 30s | 5 → OVER 0 90 | 40s | 5 → OVER 0 50',
    '5 → OVER 4 1 | 4 → OK 0 60 | 30s | 5 → OVER 2 30',
  ],
  '`hits_addend: 0`': [
    '0 → OK 4 60 | 4 → OK 0 60 | 0 → OK 0 60 | 1 → OVER 0 60 | 0 → OVER 0 60',
    '20s | 0 → OK 4 0 | 4 → OK 0 100 | 1 → OVER 0 55 | 0 → OK 0 100 | 70s | 0 → OK 2 30',
    '0 → OK 4 0 | 4 → OK 0 60 | 1 → OVER 0 15 | 0 → OK 0 60',
  ],
  '`is_negative_hits`': [
    '4 → OK 0 60 | -3 → OK 3 60 | 1 → OK 2 60 | -9 → OK 4 60',
    '4 → OK 0 120 | 60s | -1 → OK 1 60 | 1 → OK 0 120 | -3 → OK 3 60 | -9 → OK 4 0',
    '-2 → OK 4 0 | 4 → OK 0 60 | -3 → OK 3 15 | -9 → OK 4 0',
  ],
  '`requests_per_unit: 0`': [
    '0 → OK 0 60 | 1 → OVER 0 60',
    '0 → OK 0 0 | 1 → OVER 0 60 | 20s | 1 → OVER 0 40',
    '0 → OK 0 0 | 1 → OVER 0 60',
    { limit: { requestsPerUnit: 0 } },
  ],
  'A limit in the request': [
    '4 k=xy → OK 0 60 | 5 per MINUTE → OK 4 60 | 5s | 5 per SECOND → OK 4 1',
    '4 k=xy → OK 0 120 | 5 per MINUTE → OK 0 120 | 5 per SECOND → OK 4 2',
    // The bucket is full in 120 s at the rate of the rule. With 8 per minute, a hit takes 7.5 s, and it is full in 60 s
    // at most.
    { steps: '8 k=xy → OK 0 120 | 8 per MINUTE → OVER 0 8 | 8s | 8 per MINUTE → OK 0 60', limit: { burst: 8 } },
    SHARED,
  ],
  '`shadow_mode`': [
    '4 → OK 0 60 | 2 → OK 0 60 | -2 → OK 0 60',
    '4 → OK 0 120 | 2 → OK 0 90 | -2 → OK 2 120',
    '4 → OK 0 60 | 2 → OK 0 30 | -2 → OK 2 30',
    { rule: { shadowMode: true }, statistics: SHADOWED },
  ],
  '`quota_mode`': [
    '4 → OK 0 60 | k=x + k=y → OK: OVER 0 60, OK 3 60 | 1 → OVER 0 60',
    '4 → OK 0 120 | k=x + k=y → OK: OVER 0 75, OK 3 120 | 1 → OVER 0 75',
    '4 → OK 0 60 | k=x + k=y → OK: OVER 0 15, OK 3 15 | 1 → OVER 0 15',
    { rule: { quotaMode: true } },
  ],
  'Near the limit (`near_limit`)': [
    { steps: '3 → OK 1 60 | 1 → OK 0 60', statistics: { total_hits: 4, within_limit: 4, near_limit: 2 } },
    { steps: '3 → OK 1 120 | 1 → OK 0 120', statistics: { total_hits: 4, within_limit: 4, near_limit: 2 } },
    {
      steps: '5 → OK 3 75 | 1 → OK 2 90',
      limit: { burst: 8 },
      statistics: { total_hits: 6, within_limit: 6, near_limit: 2 },
    },
    { options: { nearLimitRatio: 0.5 } },
  ],
  'Statistics of a call over the limit': [
    {
      steps: '3 → OK 1 60 | 2 → OVER 0 60',
      statistics: { total_hits: 5, within_limit: 3, near_limit: 1, near_limit_partial: 1, over_limit: 1 },
    },
    '3 → OK 1 120 | 2 → OVER 1 80',
    '3 → OK 1 45 | 2 → OVER 1 15',
    { statistics: { total_hits: 5, within_limit: 3, over_limit: 2 } },
  ],
  'Local cache (`LOCAL_CACHE_SIZE_IN_BYTES`)': [
    {
      steps: '4 → OK 0 60 | 1 → OVER 0 60 | 59s | 1 → OVER 0 1 | 1s | 1 → OK 3 60',
      statistics: { ...CACHED, near_limit: 1 },
    },
    {
      steps: '4 → OK 0 120 | 1 → OVER 0 75 | 0 → OK 0 120 | 60s | 1 → OVER 0 15 | 15s | 1 → OK 0 105',
      statistics: { ...CACHED, near_limit: 2 },
    },
    {
      steps: '4 → OK 0 60 | 1 → OVER 0 15 | 0 → OK 0 60 | 14s | 1 → OVER 0 1 | 1s | 1 → OK 0 60',
      statistics: { ...CACHED, near_limit: 2 },
    },
    LOCAL_CACHE,
  ],
  '`share_threshold`': [
    '4 k=xa → OK 0 60 | k=xb → OVER 0 60',
    '4 k=xa → OK 0 120 | k=xb → OVER 0 75',
    '4 k=xa → OK 0 60 | k=xb → OVER 0 15',
    SHARED,
  ],
  '`detailed_metric`': [
    '1 → OK 3 60',
    '1 → OK 3 120',
    '1 → OK 3 15',
    { rule: { detailedMetric: true }, statistics: { 'k_x.total_hits': 1, 'k_x.within_limit': 1 } },
  ],
  '`STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT`': [
    'k=x + one=x → OK: OK 3 60, OK 0 60 | k=x + one=x → OVER: OK 3 60, OVER 0 60',
    'k=x + one=x → OK: OK 3 120, OK 0 60 | k=x + one=x → OVER: OK 2 120, OVER 0 60',
    'k=x + one=x → OK: OK 3 15, OK 0 60 | k=x + one=x → OVER: OK 2 30, OVER 0 60',
    { options: { stopIncrementWhenOverLimit: true } },
  ],
  '`limit_remaining`': [
    '1 → OK 3 60 | 4 → OVER 0 60',
    '1 → OK 3 120 | 4 → OVER 3 120',
    { steps: '1 → OK 5 15 | 6 → OVER 5 15', limit: { burst: 6 } },
  ],
  '`duration_until_reset`, OK': [
    '20s | 1 → OK 3 40 | 5s | 1 → OK 2 35',
    '20s | 1 → OK 3 100 | 5s | 1 → OK 2 95 | 60s | 0 → OK 2 35',
    '20s | 1 → OK 3 15 | 5s | 1 → OK 2 25',
  ],
  '`duration_until_reset`, OVER_LIMIT': [
    '4 → OK 0 60 | 20s | 1 → OVER 0 40',
    '4 → OK 0 120 | 90s | 2 → OK 0 90 | 1 → OVER 0 15 | 3 → OVER 0 60 | 5 → OVER 0 90',
    '4 → OK 0 60 | 5s | 1 → OVER 0 10 | 3 → OVER 0 40 | 5 → OVER 0 55',
  ],
  'Response headers': [
    { steps: '1 → OK 3 60', headers: ['4', '3', '60'] },
    { steps: '1 → OK 3 120', headers: ['4', '3', '120'] },
    { steps: '1 → OK 7 15', limit: { burst: 8 }, headers: ['8, 4;w=60;burst=8', '7', '15'] },
    HEADERS,
  ],
};

/** The beginning of a minute. */
const START = 1_764_000_000_000;

function play(name: Name, { steps, ...cell }: Cell) {
  const algorithm = name === 'fixed_window' ? undefined : name;
  const k = { key: 'k', rateLimit: limit(4, 'MINUTE', { algorithm, ...cell.limit }), ...cell.rule };
  const service = serve([k, { key: 'one', rateLimit: perMinute(1) }], cell.options, START);
  let headers: readonly string[] = [];
  const answers = steps.split(' | ').map((step) => {
    if (/^\d+s$/.test(step)) {
      service.now += parseInt(step, 10) * 1000;
      return step;
    }
    const [what = ''] = step.split(' → ');
    const verdict = call(service, ...what.split(' + ').map(descriptorOf));
    headers = verdict.responseHeaders.map(({ value }) => value);
    return `${what} → ${shown(verdict)}`;
  });
  const statistics = Object.entries(service.moved()).flatMap(([full, value]) => {
    const [, statistic] = /^shop\.(?:k\.)?(.*)$/.exec(full) ?? [];
    return statistic === undefined ? [] : [[statistic, value] as const];
  });
  return { answers: answers.join(' | '), statistics: Object.fromEntries(statistics), headers };
}

function shown({ overallCode, statuses }: Verdict): string {
  const each = statuses.map(({ code, limitRemaining, secondsUntilReset }) => {
    return `${code === Code.OK ? 'OK' : 'OVER'} ${limitRemaining} ${secondsUntilReset}`;
  });
  return each.length === 1 ? each[0]! : `${overallCode === Code.OK ? 'OK' : 'OVER'}: ${each.join(', ')}`;
}

describe.each(COLUMNS)('the algorithm %s', (name) => {
  it.each(Object.entries(TABLE).map(([title, row]) => [title, cellOf(row, name)] as const))('%s', (_, cell) => {
    const { answers, statistics, headers } = play(name, cell);
    expect(answers).toBe(cell.steps);
    if (cell.statistics !== undefined) expect(statistics).toEqual(cell.statistics);
    if (cell.headers !== undefined) expect(headers).toEqual(cell.headers);
  });
});

it('the table of docs/rules.md has the rows that are played', () => {
  const page = readFileSync(join(__dirname, '../../docs/rules.md'), 'utf8');
  const [, table = ''] = /^\| \| `fixed_window` .*\n\|.*\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const rows = Array.from(table.matchAll(/^\| (.*?) \|/gm), ([, title]) => title!);
  const common = ['`requests_per_unit: 0`', '`quota_mode`', '`share_threshold`', '`detailed_metric`'];
  expect(rows).toEqual(Object.keys(TABLE).filter((title) => !common.includes(title)));
  // What all algorithms have in common is in a paragraph.
  expect(common.filter((title) => !page.includes(title))).toEqual([]);
});

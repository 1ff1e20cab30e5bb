import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LimiterOptions } from '../../src/limiter/options';
import type { Descriptor } from '../../src/limiter/request';
import { Code, type Verdict } from '../../src/limiter/verdict';
import type { RuleLimit } from '../../src/rules/rule-config';
import { unitByName } from '../../src/rules/unit';
import { descriptor } from '../support/data/requests';
import { type RuleSketch, limit } from '../support/data/rules';
import { call, perMinute, serve } from './serve';

/** The columns of the table in docs/rules.md. */
const COLUMNS = ['fixed_window', 'sliding_window', 'token_bucket'] as const;
type Name = (typeof COLUMNS)[number];

/**
 * Seconds that pass, or a request and its answer: code, remaining and seconds until the reset of each descriptor, and
 * the overall code if there are several.
 */
type Step = number | readonly [what: string | Descriptor | readonly string[], answer: string];

/** A rule of 4 per minute for the key `k`, unless it says otherwise, and requests from the beginning of a minute on. */
interface Cell {
  readonly limit?: Partial<RuleLimit>;
  readonly rule?: Partial<RuleSketch>;
  readonly options?: Partial<LimiterOptions>;
  readonly steps: readonly Step[];
  /** Those of the rule that the steps have changed. */
  readonly statistics?: Readonly<Record<string, number>>;
  /** Of the last step. */
  readonly headers?: readonly string[];
}

function hits(count: number, text = 'k=x'): Descriptor {
  return descriptor(text, { hitsAddend: Math.abs(count), isNegativeHits: count < 0 });
}

function override(requestsPerUnit: number, unit: 'SECOND' | 'MINUTE'): Descriptor {
  return descriptor('k=x', { limit: { requestsPerUnit, unit: unitByName(unit) } });
}

/** The cells of the three algorithms, with what they have in common. */
function row(common: Omit<Cell, 'steps'>, ...cells: readonly [fixed: Cell, sliding: Cell, bucket: Cell]) {
  const [fixed, sliding, bucket] = cells.map((cell) => ({ ...common, ...cell })) as [Cell, Cell, Cell];
  return { fixed_window: fixed, sliding_window: sliding, token_bucket: bucket };
}

const SHARED: Omit<Cell, 'steps'> = { rule: { value: 'x*', shareThreshold: true } };
const LOCAL_CACHE: Omit<Cell, 'steps'> = { options: { localCacheBytes: 100_000 } };
const HEADERS: Omit<Cell, 'steps'> = {
  options: { responseHeaders: { limit: 'limit', remaining: 'remaining', reset: 'reset' } },
};
const SHADOWED = {
  total_hits: 6,
  within_limit: 4,
  near_limit: 1,
  over_limit: 2,
  shadow_mode: 2,
  total_negative_hits: 2,
};
const CACHED = { total_hits: 7, within_limit: 5, over_limit: 2, over_limit_with_local_cache: 1 };
/** All that a limit of 4 allows, with the seconds until nothing counts. */
function all(seconds: number): Step {
  return [hits(4), `OK 0 ${seconds}`];
}

/** By the names of the rows in docs/rules.md. A token flows into the bucket every 15 s. */
const TABLE: Readonly<Record<string, Readonly<Record<Name, Cell>>>> = {
  'A call over the limit': row(
    {},
    {
      steps: [
        [hits(3), 'OK 1 60'],
        [hits(2), 'OVER 0 60'],
        ['k=x', 'OVER 0 60'],
      ],
    },
    {
      steps: [
        [hits(3), 'OK 1 120'],
        [hits(2), 'OVER 1 80'],
        ['k=x', 'OK 0 120'],
      ],
    },
    {
      steps: [
        [hits(3), 'OK 1 45'],
        [hits(2), 'OVER 1 15'],
        ['k=x', 'OK 0 60'],
      ],
    },
  ),
  'More hits than fit at all': row(
    {},
    {
      steps: [
        [hits(5), 'OVER 0 60'],
        ['k=x', 'OVER 0 60'],
      ],
    },
    { steps: [[hits(5), 'OVER 4 1'], all(120), 30, [hits(5), 'OVER 0 90'], 40, [hits(5), 'OVER 0 50']] },
    { steps: [[hits(5), 'OVER 4 1'], all(60), 30, [hits(5), 'OVER 2 30']] },
  ),
  '`hits_addend: 0`': row(
    {},
    { steps: [[hits(0), 'OK 4 60'], all(60), [hits(0), 'OK 0 60'], ['k=x', 'OVER 0 60'], [hits(0), 'OVER 0 60']] },
    {
      steps: [20, [hits(0), 'OK 4 0'], all(100), ['k=x', 'OVER 0 55'], [hits(0), 'OK 0 100'], 70, [hits(0), 'OK 2 30']],
    },
    { steps: [[hits(0), 'OK 4 0'], all(60), ['k=x', 'OVER 0 15'], [hits(0), 'OK 0 60']] },
  ),
  '`is_negative_hits`': row(
    {},
    { steps: [all(60), [hits(-3), 'OK 3 60'], ['k=x', 'OK 2 60'], [hits(-9), 'OK 4 60']] },
    { steps: [all(120), 60, [hits(-1), 'OK 1 60'], ['k=x', 'OK 0 120'], [hits(-3), 'OK 3 60'], [hits(-9), 'OK 4 0']] },
    { steps: [[hits(-2), 'OK 4 0'], all(60), [hits(-3), 'OK 3 15'], [hits(-9), 'OK 4 0']] },
  ),
  '`requests_per_unit: 0`': row(
    { limit: { requestsPerUnit: 0 } },
    {
      steps: [
        [hits(0), 'OK 0 60'],
        ['k=x', 'OVER 0 60'],
      ],
    },
    {
      steps: [[hits(0), 'OK 0 0'], ['k=x', 'OVER 0 60'], 20, ['k=x', 'OVER 0 40']],
    },
    {
      steps: [
        [hits(0), 'OK 0 0'],
        ['k=x', 'OVER 0 60'],
      ],
    },
  ),
  'A limit in the request': row(
    SHARED,
    {
      steps: [[hits(4, 'k=xy'), 'OK 0 60'], [override(5, 'MINUTE'), 'OK 4 60'], 5, [override(5, 'SECOND'), 'OK 4 1']],
    },
    {
      steps: [
        [hits(4, 'k=xy'), 'OK 0 120'],
        [override(5, 'MINUTE'), 'OK 0 120'],
        [override(5, 'SECOND'), 'OK 4 2'],
      ],
    },
    {
      limit: { burst: 8 },
      // The bucket is full in 120 s at the rate of the rule. With 8 per minute, a hit takes 7.5 s, and it is full in 60
      // s at most.
      steps: [
        [hits(8, 'k=xy'), 'OK 0 120'],
        [override(8, 'MINUTE'), 'OVER 0 8'],
        8,
        [override(8, 'MINUTE'), 'OK 0 60'],
      ],
    },
  ),
  '`shadow_mode`': row(
    { rule: { shadowMode: true }, statistics: SHADOWED },
    { steps: [all(60), [hits(2), 'OK 0 60'], [hits(-2), 'OK 0 60']] },
    { steps: [all(120), [hits(2), 'OK 0 90'], [hits(-2), 'OK 2 120']] },
    { steps: [all(60), [hits(2), 'OK 0 30'], [hits(-2), 'OK 2 30']] },
  ),
  '`quota_mode`': row(
    { rule: { quotaMode: true } },
    { steps: [all(60), [['k=x', 'k=y'], 'OK: OVER 0 60, OK 3 60'], ['k=x', 'OVER 0 60']] },
    { steps: [all(120), [['k=x', 'k=y'], 'OK: OVER 0 75, OK 3 120'], ['k=x', 'OVER 0 75']] },
    { steps: [all(60), [['k=x', 'k=y'], 'OK: OVER 0 15, OK 3 15'], ['k=x', 'OVER 0 15']] },
  ),
  'Near the limit (`near_limit`)': row(
    { options: { nearLimitRatio: 0.5 } },
    {
      steps: [
        [hits(3), 'OK 1 60'],
        ['k=x', 'OK 0 60'],
      ],
      statistics: { total_hits: 4, within_limit: 4, near_limit: 2 },
    },
    {
      steps: [
        [hits(3), 'OK 1 120'],
        ['k=x', 'OK 0 120'],
      ],
      statistics: { total_hits: 4, within_limit: 4, near_limit: 2 },
    },
    {
      limit: { burst: 8 },
      steps: [
        [hits(5), 'OK 3 75'],
        ['k=x', 'OK 2 90'],
      ],
      statistics: { total_hits: 6, within_limit: 6, near_limit: 2 },
    },
  ),
  'Statistics of a call over the limit': row(
    { statistics: { total_hits: 5, within_limit: 3, over_limit: 2 } },
    {
      steps: [
        [hits(3), 'OK 1 60'],
        [hits(2), 'OVER 0 60'],
      ],
      statistics: { total_hits: 5, within_limit: 3, near_limit: 1, near_limit_partial: 1, over_limit: 1 },
    },
    {
      steps: [
        [hits(3), 'OK 1 120'],
        [hits(2), 'OVER 1 80'],
      ],
    },
    {
      steps: [
        [hits(3), 'OK 1 45'],
        [hits(2), 'OVER 1 15'],
      ],
    },
  ),
  'Local cache (`LOCAL_CACHE_SIZE_IN_BYTES`)': row(
    LOCAL_CACHE,
    {
      steps: [all(60), ['k=x', 'OVER 0 60'], 59, ['k=x', 'OVER 0 1'], 1, ['k=x', 'OK 3 60']],
      statistics: { ...CACHED, near_limit: 1 },
    },
    {
      steps: [all(120), ['k=x', 'OVER 0 75'], [hits(0), 'OK 0 120'], 60, ['k=x', 'OVER 0 15'], 15, ['k=x', 'OK 0 105']],
      statistics: { ...CACHED, near_limit: 2 },
    },
    {
      steps: [all(60), ['k=x', 'OVER 0 15'], [hits(0), 'OK 0 60'], 14, ['k=x', 'OVER 0 1'], 1, ['k=x', 'OK 0 60']],
      statistics: { ...CACHED, near_limit: 2 },
    },
  ),
  '`share_threshold`': row(
    SHARED,
    {
      steps: [
        [hits(4, 'k=xa'), 'OK 0 60'],
        ['k=xb', 'OVER 0 60'],
      ],
    },
    {
      steps: [
        [hits(4, 'k=xa'), 'OK 0 120'],
        ['k=xb', 'OVER 0 75'],
      ],
    },
    {
      steps: [
        [hits(4, 'k=xa'), 'OK 0 60'],
        ['k=xb', 'OVER 0 15'],
      ],
    },
  ),
  '`detailed_metric`': row(
    { rule: { detailedMetric: true }, statistics: { 'k_x.total_hits': 1, 'k_x.within_limit': 1 } },
    { steps: [['k=x', 'OK 3 60']] },
    { steps: [['k=x', 'OK 3 120']] },
    { steps: [['k=x', 'OK 3 15']] },
  ),
  '`STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT`': row(
    { options: { stopIncrementWhenOverLimit: true } },
    {
      steps: [
        [['k=x', 'one=x'], 'OK: OK 3 60, OK 0 60'],
        [['k=x', 'one=x'], 'OVER: OK 3 60, OVER 0 60'],
      ],
    },
    {
      steps: [
        [['k=x', 'one=x'], 'OK: OK 3 120, OK 0 60'],
        [['k=x', 'one=x'], 'OVER: OK 2 120, OVER 0 60'],
      ],
    },
    {
      steps: [
        [['k=x', 'one=x'], 'OK: OK 3 15, OK 0 60'],
        [['k=x', 'one=x'], 'OVER: OK 2 30, OVER 0 60'],
      ],
    },
  ),
  '`limit_remaining`': row(
    {},
    {
      steps: [
        ['k=x', 'OK 3 60'],
        [hits(4), 'OVER 0 60'],
      ],
    },
    {
      steps: [
        ['k=x', 'OK 3 120'],
        [hits(4), 'OVER 3 120'],
      ],
    },
    {
      limit: { burst: 6 },
      steps: [
        ['k=x', 'OK 5 15'],
        [hits(6), 'OVER 5 15'],
      ],
    },
  ),
  '`duration_until_reset`, OK': row(
    {},
    { steps: [20, ['k=x', 'OK 3 40'], 5, ['k=x', 'OK 2 35']] },
    { steps: [20, ['k=x', 'OK 3 100'], 5, ['k=x', 'OK 2 95'], 60, [hits(0), 'OK 2 35']] },
    { steps: [20, ['k=x', 'OK 3 15'], 5, ['k=x', 'OK 2 25']] },
  ),
  '`duration_until_reset`, OVER_LIMIT': row(
    {},
    { steps: [all(60), 20, ['k=x', 'OVER 0 40']] },
    {
      steps: [all(120), 90, [hits(2), 'OK 0 90'], ['k=x', 'OVER 0 15'], [hits(3), 'OVER 0 60'], [hits(5), 'OVER 0 90']],
    },
    { steps: [all(60), 5, ['k=x', 'OVER 0 10'], [hits(3), 'OVER 0 40'], [hits(5), 'OVER 0 55']] },
  ),
  'Response headers': row(
    HEADERS,
    { steps: [['k=x', 'OK 3 60']], headers: ['4', '3', '60'] },
    { steps: [['k=x', 'OK 3 120']], headers: ['4', '3', '120'] },
    { limit: { burst: 8 }, steps: [['k=x', 'OK 7 15']], headers: ['8, 4;w=60;burst=8', '7', '15'] },
  ),
};

/** The beginning of a minute. */
const START = 1_764_000_000_000;

function play(name: Name, { steps, ...cell }: Cell) {
  const algorithm = name === 'fixed_window' ? undefined : name;
  const k = { key: 'k', rateLimit: limit(4, 'MINUTE', { algorithm, ...cell.limit }), ...cell.rule };
  const service = serve([k, { key: 'one', rateLimit: perMinute(1) }], cell.options, START);
  let headers: readonly string[] = [];
  const answers = steps.map((step): Step => {
    if (typeof step === 'number') {
      service.now += step * 1000;
      return step;
    }
    const [what] = step;
    const verdict = call(service, ...(Array.isArray(what) ? (what as readonly string[]) : [what as Descriptor]));
    headers = verdict.responseHeaders.map(({ value }) => value);
    return [what, shown(verdict)];
  });
  const statistics = Object.entries(service.moved()).flatMap(([full, value]) => {
    const [, statistic] = /^shop\.(?:k\.)?(.*)$/.exec(full) ?? [];
    return statistic === undefined ? [] : [[statistic, value] as const];
  });
  return { answers, statistics: Object.fromEntries(statistics), headers };
}

function shown({ overallCode, statuses }: Verdict): string {
  const each = statuses.map(({ code, limitRemaining, secondsUntilReset }) => {
    return `${code === Code.OK ? 'OK' : 'OVER'} ${limitRemaining} ${secondsUntilReset}`;
  });
  return each.length === 1 ? each[0]! : `${overallCode === Code.OK ? 'OK' : 'OVER'}: ${each.join(', ')}`;
}

describe.each(COLUMNS)('the algorithm %s', (name) => {
  it.each(Object.entries(TABLE).map(([title, cells]) => [title, cells[name]] as const))('%s', (_, cell) => {
    const { answers, statistics, headers } = play(name, cell);
    expect(answers).toEqual(cell.steps);
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

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_OPTIONS, type LimiterOptions } from '../../../src/limiter/decision';
import { Limiter } from '../../../src/limiter/limiter';
import type { Descriptor } from '../../../src/limiter/request';
import { Code, type Verdict } from '../../../src/limiter/verdict';
import { ALGORITHMS, type RateLimitConfig } from '../../../src/rules/rule-config';
import type { Ruleset } from '../../../src/rules/ruleset';
import { unitByName } from '../../../src/rules/unit';
import { turnScheduler } from '../../../src/main/turn-scheduler';
import { Statistics } from '../../../src/statistics/statistics';
import { type Decisions, decisions } from '../../../src/streams/decisions';
import type { Counters } from '../../../src/streams/ports/counters';
import { descriptor, request } from '../../support/data/requests';
import { type RuleSketch, limit, rulesetOf } from '../../support/data/rules';

type Name = (typeof ALGORITHMS)[number];

/** The time of the decisions and of the store, in Unix milliseconds. */
export const clock = { now: 1_764_000_000_000 };
const MINUTE = 60_000;

/**
 * Seconds that pass, or a request and its answer: code, remaining and seconds until the reset of each descriptor, and the overall code if
 * there are several.
 */
type Step = number | readonly [what: string | Descriptor | readonly string[], answer: string];

/** A rule of 4 per minute for the key `k`, unless it says otherwise, and requests from the beginning of a minute on. */
interface Cell {
  readonly limit?: Partial<RateLimitConfig>;
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
      // The bucket is full in 120 s at the rate of the rule. With 8 per minute, a hit takes 7.5 s, and it is full in 60 s at most.
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
      statistics: { total_hits: 5, within_limit: 3, near_limit: 1, over_limit: 1 },
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

/** Decides on a store. */
export class Service implements Disposable {
  readonly statistics = new Statistics(100);
  readonly #decisions: Decisions;
  readonly #subscription;

  /** @param now of the decisions, in Unix milliseconds */
  // oxlint-disable-next-line max-params -- most tests need only the first two
  constructor(
    ruleset: Ruleset,
    counters: Counters,
    options: Partial<LimiterOptions> = {},
    now: () => number = () => clock.now,
  ) {
    this.#decisions = decisions({
      limiter: new Limiter({ ...DEFAULT_OPTIONS, ...options }, this.statistics),
      ruleset: () => ruleset,
      counters,
      statistics: this.statistics,
      scheduler: { now, schedule: turnScheduler.schedule.bind(turnScheduler) },
      onInternalError: (error) => {
        throw error;
      },
    });
    this.#subscription = this.#decisions.windows$.subscribe();
  }

  decide(domain: string, descriptors: readonly (string | Descriptor)[]): Promise<Verdict> {
    return new Promise((verdict, error) => {
      this.#decisions.decide(request(domain, descriptors), { verdict, error });
    });
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}

let domains = 0;

async function play(name: Name, counters: Counters, cell: Cell) {
  const domain = `domain-${(domains += 1)}`;
  const algorithm = name === 'fixed_window' ? undefined : name;
  const k = { key: 'k', rateLimit: limit(4, 'MINUTE', { algorithm, ...cell.limit }), ...cell.rule };
  const ruleset = rulesetOf(domain, k, { key: 'one', rateLimit: limit(1, 'MINUTE') });
  using service = new Service(ruleset, counters, cell.options);
  const before = clock.now;
  clock.now += 10 * MINUTE - (clock.now % MINUTE);
  const answers: Step[] = [];
  let verdict: Verdict | undefined;
  for (const step of cell.steps) {
    if (typeof step === 'number') {
      clock.now += step * 1000;
      answers.push(step);
      continue;
    }
    const what =
      typeof step[0] === 'object' && Array.isArray(step[0]) ? (step[0] as readonly string[]) : [step[0] as Descriptor];
    verdict = await service.decide(domain, what);
    answers.push([step[0], shown(verdict)]);
  }
  clock.now = Math.max(before, clock.now);
  const prefix = `ratelimit.service.rate_limit.${domain}.`;
  const statistics = [...service.statistics.entries()].flatMap(([full, value]) => {
    return full.startsWith(prefix) ? [[full.slice(prefix.length).replace(/^k\./, ''), value] as const] : [];
  });
  return {
    answers,
    statistics: Object.fromEntries(statistics),
    headers: verdict?.responseHeaders.map(({ value }) => value),
  };
}

function shown({ overallCode, statuses }: Verdict): string {
  const each = statuses.map(({ code, limitRemaining, secondsUntilReset }) => {
    return `${code === Code.OK ? 'OK' : 'OVER'} ${limitRemaining} ${secondsUntilReset}`;
  });
  return each.length === 1 ? each[0]! : `${overallCode === Code.OK ? 'OK' : 'OVER'}: ${each.join(', ')}`;
}

/** Plays the table of docs/rules.md on a store, whose time is that of {@link clock}. @param store called when a scenario begins */
export function algorithmTable(store: () => Counters, names: readonly Name[] = ALGORITHMS): void {
  describe.each(names)('the algorithm %s', (name) => {
    it.each(Object.entries(TABLE).map(([title, cells]) => [title, cells[name]] as const))('%s', async (_, cell) => {
      const { answers, statistics, headers } = await play(name, store(), cell);
      expect(answers).toEqual(cell.steps);
      if (cell.statistics !== undefined) expect(statistics).toEqual(cell.statistics);
      if (cell.headers !== undefined) expect(headers).toEqual(cell.headers);
    });
  });
}

/** Plays rules with `rate_limits` on a store. @param names of the second limit; the first is a fixed window */
export function severalLimits(store: () => Counters, names: readonly Name[] = ALGORITHMS): void {
  it.each(names)('a rule with rate_limits counts at a fixed window and at a %s', async (name) => {
    const domain = `domain-${(domains += 1)}`;
    const algorithm = name === 'fixed_window' ? undefined : name;
    const rateLimits = [limit(2, 'MINUTE'), limit(3, 'HOUR', { algorithm })];
    using service = new Service(rulesetOf(domain, { key: 'k', rateLimits }), store());
    clock.now += 60 * MINUTE - (clock.now % (60 * MINUTE));
    const answers: string[] = [];
    for (const pause of [0, 0, 0, MINUTE]) {
      clock.now += pause;
      answers.push(shownLimit(await service.decide(domain, ['k=x'])));
    }
    // The third call is over the first limit and counts at the second.
    expect(answers).toEqual(['OK 1 of 2', 'OK 0 of 2', 'OVER 0 of 2', 'OVER 0 of 3']);
  });
  if (names.length === 1) return;
  it('a rule with all_or_nothing counts a call at each kind of limit, or at none', async () => {
    const domain = `domain-${(domains += 1)}`;
    const rateLimits = [
      limit(2, 'MINUTE'),
      limit(3, 'HOUR', { algorithm: 'token_bucket' }),
      limit(9, 'DAY', { algorithm: 'sliding_window' }),
    ];
    const beside = { key: 'beside', rateLimit: limit(99, 'MINUTE') };
    const ruleset = rulesetOf(domain, { key: 'k', rateLimits, allOrNothing: true }, beside);
    using service = new Service(ruleset, store());
    clock.now += 60 * MINUTE - (clock.now % (60 * MINUTE));
    // Calls of one turn, with a descriptor that may be in another place of the store.
    const burst = await Promise.all(['a', 'b', 'c'].map((value) => service.decide(domain, ['k=x', `beside=${value}`])));
    clock.now += MINUTE;
    const later = [await service.decide(domain, ['k=x']), await service.decide(domain, ['k=x'])];
    expect([...burst, ...later].map((verdict) => shownLimit(verdict))).toEqual([
      'OK 1 of 2',
      'OK 0 of 2',
      'OVER 0 of 2',
      'OK 0 of 3',
      'OVER 0 of 3',
    ]);
    expect(burst.map(({ statuses }) => statuses[1]!.limitRemaining)).toEqual([98, 98, 98]);
  });
}

/** Code and remaining of the first descriptor, and which of its limits is shown. */
function shownLimit({ statuses }: Verdict): string {
  const { code, limitRemaining, currentLimit } = statuses[0]!;
  return `${code === Code.OK ? 'OK' : 'OVER'} ${limitRemaining} of ${currentLimit!.requestsPerUnit}`;
}

/** The rows of the table of docs/rules.md, and those that are played. */
export function rows(): readonly [documented: readonly string[], played: readonly string[]] {
  const page = readFileSync(join(__dirname, '../../../docs/rules.md'), 'utf8');
  const [, table = ''] = /^\| \| `fixed_window` .*\n\|.*\n((?:\|.*\n)+)/m.exec(page) ?? [];
  return [Array.from(table.matchAll(/^\| (.*?) \|/gm), ([, title]) => title!), Object.keys(TABLE)];
}

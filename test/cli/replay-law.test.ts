import { readFileSync } from 'node:fs';
import { VirtualTimeScheduler } from 'rxjs';
import { CHECK } from '../../src/cli/check/check';
import { readRules } from '../../src/cli/check/read-rules';
import type { ReplayReport } from '../../src/cli/replay/report';
import { Limiter } from '../../src/limiter/limiter';
import { DEFAULT_OPTIONS, type LimiterOptions } from '../../src/limiter/options';
import type { Descriptor } from '../../src/limiter/request';
import { StoredReservations } from '../../src/reservations/reservations';
import { buildRuleset } from '../../src/rules/ruleset';
import { unitByName } from '../../src/rules/unit';
import { MemoryCounters } from '../../src/sinks/counters/memory/memory-counters';
import { BoundedLines } from '../../src/sinks/logs/bounded-lines';
import { decisionLines } from '../../src/sinks/logs/decision-log';
import { Statistics } from '../../src/statistics/statistics';
import { decisions } from '../../src/streams/decisions';
import { ReservationError } from '../../src/streams/ports/reservations';
import { parseDecisionLine } from '../support/data/decision-log-schema';
import { descriptor, request } from '../support/data/requests';
import { seededRandom } from '../support/data/seeded-random';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { runOf } from './run-program';

/** In the middle of a minute, an hour and a day. */
const START = Date.UTC(2023, 10, 22, 7, 30, 30);

const RULES = `descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 12, name: users } }
  - { key: second, rate_limit: { unit: second, requests_per_unit: 3 } }
  - { key: slow, rate_limit: { unit: minute, unit_multiplier: 5, requests_per_unit: 30 } }
  - { key: zone, rate_limit: { unit: day, requests_per_unit: 200, calendar: { time_zone: Asia/Tokyo } } }
  - { key: bucket, rate_limit: { unit: minute, requests_per_unit: 30, algorithm: token_bucket, burst: 7 } }
  - { key: sliding, rate_limit: { unit: minute, requests_per_unit: 20, algorithm: sliding_window } }
  - { key: tokens, rate_limit: { unit: minute, requests_per_unit: 30, algorithm: token_bucket, burst: 7, postpaid: true } }
  - { key: spend, rate_limit: { unit: minute, requests_per_unit: 9, postpaid: true } }
  - { key: staff, rate_limit: { unlimited: true, replaces: [{ name: users }, { name: short }] } }
  - { key: part, enforce_percent: 50, rate_limit: { unit: minute, requests_per_unit: 4 } }
  - { key: trial, shadow_mode: true, rate_limit: { unit: minute, requests_per_unit: 4 } }
  - { key: quota, quota_mode: true, rate_limit: { unit: minute, requests_per_unit: 9 } }
  - { key: file, value: "/img/*", share_threshold: true, rate_limit: { unit: minute, requests_per_unit: 9 } }
  - key: blocks
    rate_limit:
      { unit: second, requests_per_unit: 2, block_for: { first: 2s, factor: 3, most: 20s, forgotten_after: 30s } }
  - key: hours
    rate_limits:
      - { unit: minute, requests_per_unit: 4, active: { time_zone: UTC, ranges: [{ from: "07:35", to: "07:40" }] } }
      - { unit: hour, requests_per_unit: 90 }
  - { key: network, address_prefix: { ipv4: 24 }, rate_limit: { unit: minute, requests_per_unit: 9 } }
  - { key: parent, descriptors: [{ key: child, rate_limit: { unit: hour, requests_per_unit: 90 } }] }
  - key: several
    rate_limits:
      - { unit: second, requests_per_unit: 5, name: short }
      - { unit: minute, requests_per_unit: 25 }
  - { key: job, rate_limit: { max_concurrent: 2 } }
  - { key: jobs, rate_limits: [{ unit: minute, requests_per_unit: 25 }, { max_concurrent: 3 }] }
  - { key: spent, rate_limits: [{ unit: minute, requests_per_unit: 25, postpaid: true }, { max_concurrent: 3 }] }
  - key: tried
    shadow_mode: true
    rate_limits: [{ unit: hour, requests_per_unit: 20 }, { unit: second, requests_per_unit: 2 }]
  - key: all
    all_or_nothing: true
    rate_limits:
      - { unit: second, requests_per_unit: 6 }
      - { unit: minute, requests_per_unit: 25, algorithm: sliding_window }
      - { unit: hour, requests_per_unit: 500, algorithm: token_bucket, burst: 60 }
`;
const DOMAINS = {
  shop: 'default_rate_limit: { unit: minute, requests_per_unit: 20 }\n',
  strict: 'on_unmatched: deny\n',
};
/** Descriptors that a reservation can have. */
const RESERVABLE = ['user=a', 'user=b', 'second=a', 'slow=a', 'zone=a', 'staff=a', 'part=anna', 'part=gil', 'trial=a']
  .concat([
    'quota=a',
    'quota=b',
    'file=/img/1',
    'file=/img/2',
    'hours=a',
    'network=10.0.0.1',
    'network=10.0.0.2:80',
    'parent=p,child=a',
    'parent=p',
    'several=a',
    'tried=a',
    'job=a',
    'jobs=a',
    'bucket=a',
    'sliding=a',
    'all=a',
    'tokens=a',
    'spend=a',
    'spent=a',
  ])
  .concat(['other=a']);
const ALL = [...RESERVABLE, 'blocks=a', 'all=b', 'tokens=b'];
/** So many that each rule has some. */
const CALLS = 1500;
/** Most calls have none. */
const PURPOSES = [...Array<undefined>(8), 'ask', 'report'] as const;

let folder: TemporaryFolder;
beforeEach(() => void (folder = new TemporaryFolder()));
afterEach(() => folder[Symbol.dispose]());

/** Reservations expire, are known already, or have ended otherwise before. */
function tolerate(error: unknown): undefined {
  if (!(error instanceof ReservationError)) throw error;
}

/** Drives a service with calls and reservations of every kind, and writes its decision log. */
async function drive(options: Partial<LimiterOptions>, sample: number): Promise<void> {
  const { configs, errors } = await readRules(folder.at('rules'), { mergeDomainConfigs: false, ignoreDotFiles: false });
  expect(errors).toEqual([]);
  const random = seededRandom('replay');
  function below(bound: number): number {
    return Math.floor(random() * bound);
  }
  let now = START;
  let text = '';
  const lines = new BoundedLines({
    write: (written, done) => {
      text += written;
      done();
    },
  });
  const log = decisionLines({ which: 'all', sample, lines, now: () => now, random });
  const [ruleset, statistics, all] = [buildRuleset(configs), new Statistics(1000), { ...DEFAULT_OPTIONS, ...options }];
  const counters = new MemoryCounters({ maxKeys: 10_000, now: () => now });
  const scheduler = new VirtualTimeScheduler();
  scheduler.now = () => now;
  const { decide } = decisions({
    ...{ limiter: new Limiter(all, statistics), ruleset: () => ruleset, counters, statistics, scheduler },
    decisionLog: log,
    onInternalError: (error) => {
      throw error;
    },
  });
  const ofReservations = { ...all, stopIncrementWhenOverLimit: false };
  const reservations = new StoredReservations({
    ...{ limiter: new Limiter(ofReservations, statistics), options: ofReservations, ruleset: () => ruleset },
    ...{ store: counters, statistics, log, now: () => now, onFree: () => undefined },
  });
  const open: { id: string; count: number }[] = [];

  function descriptorsOf(texts: readonly string[], isReservation: boolean): Descriptor[] {
    return Array.from({ length: 1 + below(3) }, () => {
      const one = texts[below(texts.length)]!;
      const more = { hitsAddend: below(3) === 0 ? below(8) : -1, isNegativeHits: !isReservation && below(8) === 0 };
      const limit = { requestsPerUnit: below(9), unit: unitByName(below(2) === 0 ? 'SECOND' : 'HOUR') };
      return descriptor(one, below(10) === 0 && (!isReservation || one !== 'bucket=a') ? { ...more, limit } : more);
    });
  }
  async function end(): Promise<void> {
    const at = below(open.length);
    const { id, count } = open[at]!;
    // Some are ended twice, also in two ways.
    if (below(8) > 0) open.splice(at, 1);
    const hits = below(2) === 0 ? below(12) : Array.from({ length: count }, () => below(12));
    await (below(3) === 0 ? reservations.cancel(id) : reservations.settle(id, hits)).catch(tolerate);
  }

  for (let index = 0; index < CALLS; index += 1) {
    const second = Math.floor(now / 1000);
    now += below(400) === 0 ? below(900_000) : below(400);
    if (Math.floor(now / 1000) > second) counters.removeExpired();
    const domain = below(4) === 0 ? 'strict' : 'shop';
    const action = below(10);
    if (action < 7) {
      const of = request(below(50) === 0 ? 'unknown' : domain, descriptorsOf(ALL, false), below(4));
      const purpose = PURPOSES[below(PURPOSES.length)];
      decide({ ...of, purpose }, { verdict: () => undefined, error: (error) => expect(error).toBeUndefined() });
    } else if (action < 9 || open.length === 0) {
      const of = request(domain, descriptorsOf(RESERVABLE, true), below(4));
      // Now and then one of an id that is known.
      const id = below(20) === 0 && open.length > 0 ? open.at(-1)!.id : `r-${index}`;
      const ttl = 1000 + below(20_000);
      const onExpiry = below(2) === 0 ? 'cancel' : 'settle';
      const reserved = await reservations.reserve({ request: of, ttl, id, onExpiry }).catch(tolerate);
      const isNew = reserved?.id !== undefined && open.every((each) => each.id !== id);
      if (isNew) open.push({ id, count: of.descriptors.length });
      if (open.length > 20) open.shift();
    } else await end();
  }
  await lines.flush();
  await counters.close();
  for (const line of text.trimEnd().split('\n')) parseDecisionLine(line);
  folder.write('log/decisions.jsonl', text);
}

async function replay(environment: NodeJS.ProcessEnv): Promise<ReplayReport> {
  const log = folder.at('log/decisions.jsonl');
  const { exitCode, stdout, stderr } = await runOf(CHECK, [folder.at('rules'), '-replay', log, '-json'], environment);
  expect([exitCode, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as ReplayReport;
}

describe('a replay of the log of a service with the rules of the service', () => {
  beforeEach(() => {
    for (const [domain, rest] of Object.entries(DOMAINS))
      folder.write(`rules/${domain}.yaml`, `domain: ${domain}\n${RULES}${rest}`);
  });

  it.each<[string, Partial<LimiterOptions>, NodeJS.ProcessEnv]>([
    ['the default settings', {}, {}],
    [
      'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT',
      { stopIncrementWhenOverLimit: true },
      { STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' },
    ],
    ['QUOTA_MODE', { quotaMode: true }, { QUOTA_MODE: 'true' }],
    ['SHADOW_MODE', { shadowMode: true }, { SHADOW_MODE: 'true' }],
  ])('finds no difference with %s', async (_, options, environment) => {
    await drive(options, 1);
    const { total, rules, log, notes } = await replay(environment);
    expect(log).toMatchObject({ malformed: 0, other: 0, failed: 0, incomplete: 0, rejected: 0, unreserved: 0 });
    expect(rules.filter(({ newlyDenied, newlyAllowed }) => newlyDenied + newlyAllowed > 0)).toEqual([]);
    expect(total).toMatchObject({ newlyDenied: 0, newlyAllowed: 0 });
    const inShadow = /^calls over limits in shadow mode, which are allowed: shop\.\w+ \d+, shop\.\w+ \d+/;
    expect(notes).toContainEqual(expect.stringMatching(inShadow));
    // The traffic has all kinds of calls, or the above means nothing.
    expect(log.ended).toBeGreaterThan(50);
    expect(rules.length).toBeGreaterThan(30);
    expect(rules.every(({ calls }) => calls > 1)).toBe(true);
    expect(rules.filter(({ calls, allowedBefore }) => allowedBefore < calls).length).toBeGreaterThan(15);
  });

  it('has both lines of a reservation in a sample, or neither', async () => {
    await drive({}, 0.3);
    const lines = readFileSync(folder.at('log/decisions.jsonl'), 'utf8').trimEnd().split('\n').map(parseDecisionLine);
    const reserved = new Set(lines.filter(({ type }) => type === 'decision').map(({ reservation }) => reservation));
    const ended = lines.filter(({ type }) => type === 'reservation').map(({ reservation }) => reservation);
    expect(ended.length).toBeGreaterThan(10);
    expect(ended.filter((id) => !reserved.has(id))).toEqual([]);
    const { log, total } = await replay({});
    expect(log).toMatchObject({ sample: 0.3, rejected: 0, malformed: 0 });
    // The others are of reservations that the replay denies, since it has other calls.
    expect(log.ended).toBeGreaterThan(ended.length / 2);
    expect(total.calls / (0.9 * CALLS)).toBeGreaterThan(0.9);
    expect(total.calls / (0.9 * CALLS)).toBeLessThan(1.1);
  });
});

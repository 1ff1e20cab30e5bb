import { readFileSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { CHECK } from '../../src/cli/check/check';
import { readLine, type RecordedCall } from '../../src/cli/replay/recorded-call';
import type { ReplayReport } from '../../src/cli/replay/report';
import { Tally } from '../../src/cli/replay/tally';
import { DEFAULT_OPTIONS } from '../../src/limiter/options';
import { Limiter } from '../../src/limiter/limiter';
import type { RateLimitRequest } from '../../src/limiter/request';
import { readRules } from '../../src/cli/check/read-rules';
import { buildRuleset } from '../../src/rules/ruleset';
import { MemoryCounters } from '../../src/sinks/counters/memory/memory-counters';
import { decisionRecord } from '../../src/sinks/logs/decision-record';
import { Statistics } from '../../src/statistics/statistics';
import { CONTROL } from '../support/data/hostile-text';
import { descriptor, request } from '../support/data/requests';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { runOf } from './run-program';

const START = Date.UTC(2023, 10, 22, 7, 30);
/** 10 calls per minute for each user; the path has no rule. */
const PRESENT = rulesOf('{ key: user, rate_limit: { unit: minute, requests_per_unit: 10 } }');
const CANDIDATE = rulesOf('{ key: user, rate_limit: { unit: minute, requests_per_unit: 4 } }');

const MISPLACED =
  'its time is more than a minute from those of the lines around it: sort the lines, which begin with their time';

let folder: TemporaryFolder;
let log: string;
beforeEach(() => {
  folder = new TemporaryFolder();
  log = folder.at('decisions.jsonl');
  folder.write('candidate/shop.yaml', CANDIDATE);
});
afterEach(() => folder[Symbol.dispose]());

function rulesOf(...rules: readonly string[]): string {
  return `domain: shop\ndescriptors:\n${rules.map((rule) => `  - ${rule}\n`).join('')}`;
}

function replay(...flags: readonly string[]) {
  return runOf(CHECK, [folder.at('candidate'), '-replay', log, ...flags]);
}

async function report(...flags: readonly string[]): Promise<ReplayReport> {
  const { exitCode, stdout, stderr } = await replay('-json', ...flags);
  expect([exitCode, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as ReplayReport;
}

interface Call {
  /** Seconds after the start. */
  readonly at?: number;
  readonly request: RateLimitRequest;
}

/** Several calls of a user, one per second. */
function callsOf(user: string, count: number, first = 0): readonly Call[] {
  return Array.from({ length: count }, (_, index) => ({
    at: first + index,
    request: request('shop', [`user=${user}`]),
  }));
}

/** Writes the log that a service with these rules would write, and returns its lines. */
async function record(rules: string, calls: readonly Call[], sample = 1): Promise<readonly string[]> {
  const { configs, errors } = await readRules(folder.write('now/shop.yaml', rules), {
    mergeDomainConfigs: false,
    ignoreDotFiles: false,
  });
  expect(errors).toEqual([]);
  let now = START;
  const [limiter, ruleset] = [new Limiter(DEFAULT_OPTIONS, new Statistics(0)), buildRuleset(configs)];
  const counters = new MemoryCounters({ maxKeys: 1000, now: () => now });
  const lines = calls.map((call) => {
    now = START + (call.at ?? 0) * 1000;
    counters.removeExpired();
    const decision = limiter.begin(call.request, ruleset, now);
    counters.countNow!(decision.operations);
    return decisionRecord(decision, decision.verdict(), { now, caller: undefined, traceId: undefined, sample });
  });
  await counters.close();
  write(...lines);
  return lines;
}

function write(...lines: readonly string[]): void {
  writeFileSync(log, lines.map((line) => `${line}\n`).join(''));
}

/** A line as {@link record} writes it, with other members. */
function lineWith(members: Readonly<Record<string, unknown>> = {}): string {
  const one = { entries: ['user=anna'], hits: 1, code: 'OK', reason: 'within_limit', rule: 'shop.user', count: 1 };
  const time = new Date(START).toISOString();
  return JSON.stringify({ type: 'decision', time, domain: 'shop', code: 'OK', descriptors: [one], ...members });
}

describe('weir-check -replay', () => {
  it('prints for each rule and its callers what the calls of a log would become, the biggest change first', async () => {
    folder.write(
      'candidate/shop.yaml',
      CANDIDATE + '  - { key: path, rate_limit: { unit: hour, requests_per_unit: 1 } }\n',
    );
    const paths = [{ request: request('shop', ['path=/', 'path=/cart']) }, { request: request('shop', ['path=/']) }];
    await record(PRESENT, [...callsOf('anna', 12), ...callsOf('ben', 5, 15), ...callsOf('eva', 4, 30), ...paths]);
    expect(await replay()).toEqual({
      exitCode: 0,
      stderr: '',
      stdout: `23 calls from 2023-11-22T07:30:00.000Z to 2023-11-22T07:30:33.000Z, compared with what the log says was decided

RULE       CALLS  ALLOWED BEFORE  ALLOWED AFTER  NEWLY DENIED  NEWLY ALLOWED
shop.user     21              19             12             7              0
shop.path      3               3              2             1              0
all calls     23              21             13             8              0

shop.user: 2 callers newly denied, 0 newly allowed
  CALLER     CALLS  ALLOWED BEFORE  ALLOWED AFTER  NEWLY DENIED  NEWLY ALLOWED
  user=anna     12              10              4             6              0
  user=ben       5               5              4             1              0

shop.path: 1 caller newly denied, 0 newly allowed
  CALLER  CALLS  ALLOWED BEFORE  ALLOWED AFTER  NEWLY DENIED  NEWLY ALLOWED
  path=/      2               2              1             1              0
`,
    });
  });

  it('compares with other rules instead of the log with -now, also in the other direction', async () => {
    await record(rulesOf('{ key: other }'), callsOf('anna', 12));
    folder.write('now/shop.yaml', PRESENT);
    const { before, total, rules } = await report('-now', folder.at('now'));
    const figures = { calls: 12, allowedBefore: 10, allowedAfter: 4, newlyDenied: 6, newlyAllowed: 0 };
    expect([before, total, rules]).toMatchObject(['replayed', figures, [{ rule: 'shop.user', ...figures }]]);
    const swapped = await runOf(CHECK, [folder.at('now'), '-now', folder.at('candidate'), '-replay', log, '-json']);
    expect(JSON.parse(swapped.stdout)).toMatchObject({ total: { newlyDenied: 0, newlyAllowed: 6 } });
  });

  it('counts calls that the candidate rules do not limit under the rule that limited them', async () => {
    folder.write('candidate/shop.yaml', rulesOf('{ key: other }'));
    await record(PRESENT, callsOf('anna', 12));
    expect((await report()).rules).toMatchObject([{ rule: 'shop.user', newlyAllowed: 2, callersNewlyAllowed: 1 }]);
  });

  it('reads a log that is compressed', async () => {
    await record(PRESENT, callsOf('anna', 12));
    const plain = await report();
    const whole = gzipSync(readFileSync(log));
    writeFileSync(log, whole);
    expect(await report()).toEqual(plain);
    writeFileSync(log, whole.subarray(0, -20));
    expect(await replay()).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `weir-check: cannot read the decision log (${log}): unexpected end of file\n`,
    });
  });

  it('plays hits and limits of requests as they were', async () => {
    const own = { limit: { requestsPerUnit: 2, unit: { name: 'MINUTE', number: 2, seconds: 60 } } } as const;
    await record(PRESENT, [
      { request: request('shop', ['user=anna', 'other=x'], 5) },
      { request: request('shop', [descriptor('user=anna', { hitsAddend: 2, isNegativeHits: true })]) },
      { request: request('shop', ['user=anna']) },
      ...['', '', ''].map(() => ({ request: request('shop', [descriptor('any=b', own)]) })),
    ]);
    folder.write(
      'candidate/shop.yaml',
      CANDIDATE + '  - { key: other, rate_limit: { unit: hour, requests_per_unit: 4 } }\n',
    );
    expect((await report()).rules).toMatchObject([
      // The first call only: 5 hits, then 3, then 4.
      { rule: 'shop.user', calls: 3, newlyDenied: 1 },
      // The 5 hits of the first call, which no rule has counted.
      { rule: 'shop.other', calls: 1, newlyDenied: 1 },
      { rule: 'shop: limit of the request', calls: 3, allowedBefore: 2, allowedAfter: 2 },
    ]);
  });

  it('plays asks and reports as they were, also by rules that have become postpaid', async () => {
    function ofAnna(hitsAddend = 0, purpose?: 'ask' | 'report'): Call {
      return { request: { ...request('shop', ['user=anna'], hitsAddend), purpose } };
    }
    const calls = [ofAnna(), ofAnna(8), ofAnna(), ofAnna(1), ofAnna(9), ofAnna(), ofAnna(2), ofAnna()];
    const postpaid = rulesOf('{ key: user, rate_limit: { unit: minute, requests_per_unit: 10, postpaid: true } }');
    const lines = await record(postpaid, calls);
    expect(lines.map((line) => /"hits":(\d+),"purpose":"(\w+)"/.exec(line)?.slice(1).join(' '))).toEqual(
      '0 ask,8 report,0 ask,1 report,9 report,0 ask,2 report,0 ask'.split(','),
    );
    folder.write('candidate/shop.yaml', postpaid);
    expect((await report()).total).toMatchObject({ calls: 8, allowedBefore: 5, newlyDenied: 0, newlyAllowed: 0 });
    // By the present rules, a call without hits counts 1, and more than fits is denied.
    await record(PRESENT, calls);
    expect((await report()).total).toMatchObject({ calls: 8, allowedBefore: 3, newlyAllowed: 2, newlyDenied: 0 });

    const checks = [ofAnna(9, 'report'), ofAnna(5, 'ask'), ofAnna(0, 'report'), ofAnna(0, 'ask'), ofAnna(3, 'report')];
    await record(PRESENT, checks);
    folder.write('candidate/shop.yaml', PRESENT);
    expect((await report()).total).toMatchObject({ calls: 5, allowedBefore: 3, newlyDenied: 0, newlyAllowed: 0 });
  });

  it('subtracts negative hits as they were, also of descriptors that had no limit', async () => {
    const negative = { hitsAddend: 3, isNegativeHits: true };
    const calls = ['user=anna', 'other=x', 'free=x'].map((each) => ({
      request: request('shop', [descriptor(each, negative)]),
    }));
    const rules = rulesOf(
      '{ key: user, rate_limit: { unit: minute, requests_per_unit: 1 } }',
      '{ key: free, rate_limit: { unlimited: true } }',
    ).concat('on_unmatched: deny\n');
    const lines = await record(rules, [...calls, ...calls]);
    folder.write('candidate/shop.yaml', rules);
    expect((await report()).total).toMatchObject({ calls: 6, allowedBefore: 6, newlyDenied: 0, newlyAllowed: 0 });
    folder.write('candidate/shop.yaml', 'domain: shop\ndescriptors: []\non_unmatched: deny\n');
    expect((await report()).total).toMatchObject({ newlyDenied: 0 });
    // As older versions wrote them.
    write(
      ...lines
        .filter((line) => line.includes('negative_hits'))
        .map((line) => line.replace('"isNegativeHits":true,', '')),
    );
    expect((await report()).total).toMatchObject({ calls: 2, newlyDenied: 0 });
  });

  it('lets each call of a sample stand for as many as it was drawn from, and says what that means', async () => {
    await record(PRESENT.replace('10', '1000'), [...callsOf('anna', 30), ...callsOf('ben', 2, 30)], 0.15);
    folder.write('candidate/shop.yaml', CANDIDATE.replace('4', '50'));
    const { total, notes, log: figures, rules } = await report();
    // 32 calls, of which each is 6 or 7. Those of anna are over 50 from the eighth on.
    expect([figures.sample, total]).toEqual([
      0.15,
      { calls: 213, allowedBefore: 213, allowedAfter: 46 + 13, newlyDenied: 154, newlyAllowed: 0 },
    ]);
    expect(rules).toMatchObject([{ isUncertain: true, callersNewlyDenied: 1 }]);
    expect(notes).toEqual([
      expect.stringMatching(/^the log is a sample \(DECISION_LOG_SAMPLE=0\.15\): each call stands for 7 calls/),
      expect.stringContaining('use -now'),
      'the sample is too small for the limits of shop.user',
    ]);
    const both = await report('-now', folder.at('now'));
    expect(both.notes).toHaveLength(2);
    expect(both.rules).toMatchObject([{ newlyDenied: 154 }]);
  });

  it('says which lines it has left out, and why', async () => {
    write(
      lineWith(),
      'no JSON',
      '',
      '{"type":"other"}',
      lineWith({ time: 'yesterday' }),
      lineWith({ descriptors: [{ entries: ['user'], code: 'OK' }] }),
      lineWith({ descriptors: [{ entries: ['user=anna'], code: 'MAYBE' }] }),
      'x'.repeat(300_000),
      lineWith({ code: undefined }),
      lineWith({ sample: 2 }),
      lineWith({ error: { code: 'store_failed', message: 'the store has failed' } }),
      lineWith({ moreDescriptors: 3 }),
      lineWith({ descriptors: [{ entries: ['user=anna'], moreEntries: 3, code: 'OK' }] }),
      lineWith({ descriptors: [] }),
      lineWith({ descriptors: [{ entries: [`user=${'a'.repeat(256)}…`], code: 'OVER_LIMIT', reason: 'over_limit' }] }),
    );
    const { log: figures, notes } = await report();
    expect(figures).toMatchObject({
      lines: 15,
      played: 2,
      malformed: 7,
      other: 2,
      failed: 1,
      incomplete: 2,
      rejected: 1,
    });
    expect(notes).toEqual([
      'left out as malformed: 7 lines (line 2: it is not JSON; line 5: its time is not valid; line ' +
        '6: an entry is not key=value; line 7: a descriptor has no code; line 8: it is longer than 262144 bytes; …)',
      'left out as no decisions: 2 lines',
      'left out as failed, so that no rule has decided them: 1 call',
      'left out, because the log does not have all their entries: 2 calls',
      'left out, because a service would reject them: 1 call',
      'the log has cut off texts of 1 call: callers whose texts begin alike count as one',
    ]);
    expect((await replay('-strict')).exitCode).toBe(1);
  });

  it.each([
    ['the far future', '9999-12-31T23:59:59.999Z', 'its time is in the future'],
    ['the future', () => new Date(Date.now() + 90_000_000).toISOString(), 'its time is in the future'],
    ['hours later than the following lines', '2023-11-22T11:30:00.000Z', MISPLACED],
    ['a minute earlier than those before', '2023-11-22T07:28:00.000Z', MISPLACED],
    ['1970', '1970-01-01T00:00:00.000Z', MISPLACED],
    ['long before 1970', '-200000-01-01T00:00:00.000Z', 'its time is not valid'],
    ['no time', '2023-13-45T99:00:00.000Z', 'its time is not valid'],
  ])('leaves out and counts a line whose time is %s, and plays the others as without it', async (_, given, reason) => {
    const lines = await record(PRESENT, callsOf('anna', 30));
    const whole = await report();
    const time = typeof given === 'string' ? given : given();
    for (const at of [12, 15, 28]) {
      write(...lines.slice(0, at), lineWith({ time }), lineWith({ time }), ...lines.slice(at));
      const { log: figures, ...rest } = await report();
      const malformedLines = [at + 1, at + 2].map((line) => ({ line, reason }));
      expect(figures).toMatchObject({ lines: 32, played: 30, malformed: 2, malformedLines });
      expect({ ...rest, notes: rest.notes.slice(1) }).toEqual({ ...whole, log: undefined });
    }
  });

  it('plays a log in which hours pass without a call, and lines that are a minute out of order', async () => {
    const calls = [0, 55, 10, 8000, 8001, 16_000];
    await record(
      PRESENT,
      calls.map((at) => ({ at, request: request('shop', ['user=anna']) })),
    );
    expect((await report()).log).toMatchObject({ played: 6, malformed: 0 });
  });

  describe('of four writers, whose blocks are in no order', () => {
    const BUCKET = '{ unit: second, requests_per_unit: 10, algorithm: token_bucket }';
    beforeEach(() => folder.write('candidate/shop.yaml', rulesOf(`{ key: user, rate_limit: ${BUCKET} }`)));

    function lineAt(milliseconds: number): string {
      return lineWith({ time: new Date(START + milliseconds).toISOString() });
    }

    /** The lines of calls that take turns at four workers, of which each writes its own in blocks of so many. */
    function inBlocks(times: readonly number[], length: number): readonly string[] {
      const blocks = [0, 1, 2, 3].flatMap((worker) => {
        const own = times.filter((_, index) => index % 4 === worker);
        return Array.from({ length: Math.ceil(own.length / length) }, (_, block) => ({
          // Some are written late.
          order: block + 0.1 * worker + (block % 3 === worker % 3 ? 1.5 : 0),
          times: own.slice(block * length, (block + 1) * length),
        }));
      });
      return blocks.toSorted((one, other) => one.order - other.order).flatMap((block) => block.times.map(lineAt));
    }

    it.each([1, 4, 13, 100])('of %i lines, passes what it does in the order of the times', async (length) => {
      const times = Array.from({ length: 3_000 }, (_, index) => index * 20);
      write(...times.map(lineAt));
      const { total, ...sorted } = await report();
      // The burst, and 10 in each of the 60 seconds that follow.
      expect(total.allowedAfter).toBe(10 + Math.floor((times.at(-1)! * 10) / 1000));
      write(...inBlocks(times, length));
      expect(await report()).toEqual({ total, ...sorted });
    });
  });

  it('reads no number that a service would not have written', async () => {
    const own = { entries: ['any=b'], code: 'OK', reason: 'within_limit' };
    const limits = [-1, 0.5, 2 ** 32, 1e300].map((requestsPerUnit) => ({ requestsPerUnit, unit: 'MINUTE' }));
    write(
      lineWith(),
      ...limits.map((currentLimit) => lineWith({ descriptors: [{ ...own, currentLimit }] })),
      ...[-1, 0.5, 2 ** 53].map((hits) => lineWith({ descriptors: [{ ...own, hits }] })),
      lineWith({ sample: Number.MIN_VALUE }),
    );
    expect((await report()).log).toMatchObject({ played: 1, malformed: 8 });
  });

  it('counts ends of reservations that it does not have open, and reads reservations without their terms', async () => {
    const end = { type: 'reservation', state: 'settled', code: undefined, descriptors: [{ entries: [], hits: 1 }] };
    write(
      lineWith({ reservation: 'a', descriptors: [{ entries: ['user=anna'], hits: 4, code: 'OK' }] }),
      lineWith({ ...end, reservation: 'a' }),
      lineWith({ ...end, reservation: 'b' }),
      // The settlement has left 3 of the 4.
      lineWith({ descriptors: [{ entries: ['user=anna'], hits: 3, code: 'OK' }] }),
      lineWith({ ...end, reservation: 'a', state: 'open' }),
      lineWith({ ...end, reservation: 'a', descriptors: [{ entries: [], hits: -1 }] }),
      lineWith({ ...end, reservation: 1 }),
    );
    const { log: figures, total, notes } = await report();
    expect(figures).toMatchObject({ played: 2, ended: 1, unreserved: 1, malformed: 3 });
    expect([total.allowedAfter, notes]).toEqual([
      2,
      [
        'left out as malformed: 3 lines (line 5: its state is neither settled nor cancelled; line 6: ' +
          'its hits are not numbers; line 7: its reservation is not a text)',
        'left out, because the replay has no such open reservation: 1 settlement',
      ],
    ]);
  });

  it('decides by the settings of the environment that decide, and rejects invalid ones', async () => {
    await record(PRESENT, callsOf('anna', 12));
    const { stdout } = await runOf(CHECK, [folder.at('candidate'), '-replay', log, '-json'], {
      SHADOW_MODE: 'true',
      KVSTORE_URL: 'not read',
    });
    expect(JSON.parse(stdout)).toMatchObject({ total: { allowedAfter: 12 } });
    const wrong = await runOf(CHECK, [folder.at('candidate'), '-replay', log], { QUOTA_MODE: 'perhaps' });
    expect(wrong).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('QUOTA_MODE') });
  });

  it('warns of a log that has only the calls over a limit', async () => {
    const [, , ...over] = await record(PRESENT.replace('10', '2'), callsOf('anna', 5));
    write(...over);
    const { stdout } = await replay();
    expect(stdout).toContain('\n\nnote: no call of the log is within its limits: with DECISION_LOG=denied the calls ');
  });

  it.each([
    ['', 'the log has no decision that can be played'],
    [
      '{}\nx\n',
      'the log has no decision that can be played; left out as malformed: 1 line (line 2: it is not ' +
        'JSON); left out as no decisions: 1 line',
    ],
  ])('fails when nothing can be played: %j', async (text, message) => {
    writeFileSync(log, text);
    expect(await replay()).toEqual({ exitCode: 1, stdout: '', stderr: `weir-check: ${message}\n` });
  });

  it('prints the problems of either rules instead, if there are any, and the reason why a log cannot be read', async () => {
    write(lineWith());
    folder.write('now/shop.yaml', PRESENT.replace('minute', 'minutes'));
    const wrong = await replay('-now', folder.at('now'));
    expect([wrong.exitCode, wrong.stdout]).toEqual([1, expect.stringContaining("invalid rate limit unit 'minutes'")]);
    log = folder.at('missing');
    expect((await replay()).stderr).toMatch(/^weir-check: cannot read the decision log \(.*missing\): ENOENT/);
    folder.write('candidate/shop.yaml', PRESENT.replace('minute', 'minutes'));
    expect((await replay()).stdout).toBe(wrong.stdout.replace('/now/', '/candidate/'));
  });

  it('shows every character of a hostile log in its place, and no markup of it in the page', async () => {
    const hostile = `<img src=x onerror=alert(1)>"'&\u202e\u0007`;
    const one = { entries: [`user=${hostile}`], code: 'OVER_LIMIT', reason: 'over_limit', rule: `<b>${hostile}\n` };
    write(
      lineWith({ domain: `<u>${hostile}`, code: 'OVER_LIMIT', descriptors: [one, { ...one, rule: undefined }] }),
      lineWith({ descriptors: [{ ...one, entries: [`user=${'<'.repeat(100_000)}`] }] }),
      JSON.stringify({ ['<'.repeat(1_000_000)]: 1 }),
      `{"type":"decision","__proto__":${'['.repeat(100_000)}`,
    );
    for (const flags of [[], ['-json'], ['-html']]) {
      const { exitCode, stdout } = await replay(...flags);
      expect([exitCode, stdout]).toEqual([0, expect.not.stringMatching(CONTROL)]);
      expect(stdout.length).toBeLessThan(30_000);
      expect(stdout).toContain(String.raw`\u202e\u0007`);
    }
    const page = (await replay('-html')).stdout;
    expect(page).not.toMatch(/<(?:img|b|u)\b/);
    expect(page).toContain('&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;');
    expect(page).not.toMatch(/ on\w+=(?!alert)|style="|<script|https?:|<meta http-equiv="refresh/);
  });

  it('shows on a terminal how much of the log it has read', async () => {
    await record(PRESENT, callsOf('anna', 12));
    const { stderr } = await runOf(CHECK, [folder.at('candidate'), '-replay', log], {}, true);
    expect(stderr.endsWith('\r\u001b[K')).toBe(true);
  });
});

describe('the tally of a replay', () => {
  const call = readLine(lineWith()) as RecordedCall;
  const one = { isAllowed: true, rule: 'shop.user', isOverInShadow: false, capacity: 1 };

  it('has at most 120 spans of time, which together are the whole log', () => {
    const tally = new Tally();
    const after = { isAllowed: false, descriptors: [one] };
    for (const seconds of [0, 1, 50, 119, 120, 5000, 400_000, 399_990]) {
      tally.add({ ...call, time: call.time + seconds * 1000 }, { before: call, after }, 1);
    }
    const { spans } = tally;
    expect(spans.length).toBeLessThanOrEqual(120);
    expect(spans.map(({ figures }) => figures.newlyDenied).filter(Boolean)).toEqual([5, 1, 2]);
    expect(spans[1]!.start - spans[0]!.start).toBe(4096_000);
    expect(spans.reduce((sum, { figures }) => sum + figures.calls, 0)).toBe(8);
  });
});

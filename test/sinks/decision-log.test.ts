import { DecisionError } from '../../src/counting/decision-error';
import { Limiter } from '../../src/limiter/limiter';
import { LocalCounts } from '../../src/limiter/local-counts';
import { DEFAULT_OPTIONS, type LimiterOptions } from '../../src/limiter/options';
import type { RateLimitRequest } from '../../src/limiter/request';
import { BoundedLines } from '../../src/sinks/logs/bounded-lines';
import { decisionLines, type DecisionLinesOptions } from '../../src/sinks/logs/decision-log';
import { Statistics } from '../../src/statistics/statistics';
import type { DecisionSource } from '../../src/streams/in-flight-decision';
import { CONTROL, HOSTILE, SHOWN } from '../support/data/hostile-text';
import { parseDecisionLine } from '../support/data/decision-log-schema';
import { descriptor, request } from '../support/data/requests';
import { limit, rulesetOf, unlimited } from '../support/data/rules';

// 10 s into a minute.
const NOW = 1_699_920_010_000;
const RULESET = rulesetOf(
  'shop',
  { key: 'user', rateLimit: limit(5, 'MINUTE', { name: 'of users' }) },
  { key: 'shadow', shadowMode: true, rateLimit: limit(5, 'MINUTE') },
  { key: 'part', enforcePercent: 0, rateLimits: [limit(6, 'HOUR'), limit(5, 'MINUTE')] },
  { key: 'denied', shadowMode: true, onStoreFailure: 'deny', rateLimit: limit(9, 'MINUTE') },
  { key: 'counted', onStoreFailure: 'local', rateLimit: limit(9, 'MINUTE') },
  { key: 'free', rateLimit: unlimited() },
  { key: 'long', rateLimit: limit(5, 'MINUTE', { unitMultiplier: 5 }) },
  { key: 'bucket', rateLimit: limit(5, 'MINUTE', { algorithm: 'token_bucket', burst: 9 }) },
  { key: 'leased', rateLimit: limit(5, 'MINUTE', { lease: true }) },
  { key: 'allowed', onStoreFailure: 'allow', rateLimit: limit(5, 'MINUTE', { lease: true }) },
  { key: 'zoned', rateLimit: limit(5, 'DAY', { calendar: { timeZone: 'Asia/Tokyo', startsOn: 1 } }) },
);
const NO_CALLER: DecisionSource = {};

const COMPLETE = { which: 'all', sample: 1, now: () => NOW, random: () => 0 } as const;

interface Scene {
  readonly options?: Partial<DecisionLinesOptions>;
  readonly limiter?: Partial<LimiterOptions>;
  /** The count that the store returns for each operation. */
  readonly count?: number;
  /** The store fails. */
  readonly failure?: DecisionError;
  /** The store fails, and policies answer. */
  readonly operationFailure?: DecisionError;
  readonly observer?: Partial<DecisionSource>;
  /** The store has counted the operations. */
  readonly isSent?: boolean;
}

/** The lines of the decisions on some requests. */
function linesOf(requests: readonly RateLimitRequest[], scene: Scene = {}): readonly string[] {
  const { options = {}, limiter: limiterOptions = {}, observer = {}, isSent = false } = scene;
  const { count = 1, failure, operationFailure } = scene;
  const texts: string[] = [];
  function write(text: string, done: () => void): void {
    texts.push(text);
    done();
  }
  const lines = decisionLines({ ...COMPLETE, lines: new BoundedLines({ write }), ...options });
  const limiter = new Limiter({ ...DEFAULT_OPTIONS, ...limiterOptions }, new Statistics(10));
  for (const each of requests) {
    const decision = limiter.begin(each, RULESET, NOW);
    for (const operation of decision.operations) {
      if (operationFailure === undefined) operation.countAfter = count;
      else operation.failure = operationFailure;
      operation.isSent = isSent;
    }
    lines.decided(decision, failure ?? decision.verdict(), { ...NO_CALLER, ...observer });
  }
  return texts.join('').split('\n').filter(Boolean);
}

/** What they say. */
function recordsOf(...given: Parameters<typeof linesOf>): readonly Readonly<Record<string, unknown>>[] {
  return linesOf(...given).map(parseDecisionLine);
}

describe('a line of the decision log', () => {
  it('has time, domain, code, and for each descriptor rule, limit, hits, count, reason and reset', () => {
    const records = recordsOf([request('shop', ['user=anna', 'free=x', 'other=y,z=1'], 3)], { count: 6 });
    const currentLimit = { requestsPerUnit: 5, unit: 'MINUTE', name: 'of users' };
    const over = { hits: 3, code: 'OVER_LIMIT', reason: 'over_limit', count: 6, durationUntilReset: '50s' };
    const descriptors = [
      { entries: ['user=anna'], rule: 'shop.user', currentLimit, ...over },
      { entries: ['free=x'], hits: 3, code: 'OK', reason: 'unlimited', rule: 'shop.free' },
      { entries: ['other=y', 'z=1'], hits: 3, code: 'OK', reason: 'no_match' },
    ];
    const time = '2023-11-14T00:00:10.000Z';
    expect(records).toEqual([{ type: 'decision', time, domain: 'shop', code: 'OVER_LIMIT', descriptors }]);
  });

  it.each([
    ['the time zone of a window of the calendar', 'zoned', { unit: 'DAY', timeZone: 'Asia/Tokyo' }],
    ['the number of units of a longer window', 'long', { unit: 'MINUTE', unitMultiplier: 5 }],
    ['the algorithm of a limit and its burst', 'bucket', { unit: 'MINUTE', algorithm: 'token_bucket', burst: 9 }],
  ])('has %s', (_, key, more) => {
    const currentLimit = { requestsPerUnit: 5, ...more };
    expect(recordsOf([request('shop', [`${key}=x`])])).toMatchObject([{ descriptors: [{ currentLimit }] }]);
  });

  it('says that a decision was made from a lease, and only of such a one', () => {
    const calls = [request('shop', ['leased=x', 'user=x'])];
    const limiter = { leases: 'rules' } as const;
    const [alone, sent, off] = [{ limiter }, { limiter, isSent: true }, {}].map((scene) => recordsOf(calls, scene)[0]!);
    expect(alone).toMatchObject({ descriptors: [{ leased: true, count: 1 }, {}] });
    expect((alone!['descriptors'] as readonly object[])[1]).not.toHaveProperty('leased');
    for (const record of [sent, off]) expect(JSON.stringify(record)).not.toContain('"leased":');
    const failed = new DecisionError('store_failed', 'away');
    const ofStore = recordsOf([request('shop', ['allowed=x'])], { limiter, operationFailure: failed })[0];
    expect(JSON.stringify(ofStore)).not.toContain('"leased":');
  });

  it.each(['allowed', 'denied', 'counted'])('has the policy that has answered: %s', (key) => {
    const dropped = new Statistics(1).counter('dropped');
    const local = new LocalCounts({ share: () => 1, reconciles: false, serverOf: () => dropped, dropped });
    const operationFailure = new DecisionError('store_failed', 'away');
    const records = recordsOf([request('shop', [`${key}=x`])], { limiter: { local }, operationFailure });
    const policy = { allowed: 'allow', denied: 'deny', counted: 'local' }[key];
    expect(records).toMatchObject([{ descriptors: [{ reason: 'store_unavailable', policy }] }]);
  });

  it('says that only shadow mode allowed the call', () => {
    const global = recordsOf([request('shop', ['user=anna'])], { count: 6, limiter: { shadowMode: true } });
    expect(global).toMatchObject([{ code: 'OK', shadowMode: true, descriptors: [{ code: 'OVER_LIMIT' }] }]);
    const ofRule = recordsOf([request('shop', ['shadow=x'])], { count: 6 });
    const shadow = { code: 'OK', reason: 'over_limit', shadowMode: true };
    expect(ofRule).toMatchObject([{ code: 'OK', descriptors: [shadow] }]);
    expect(ofRule[0]).not.toHaveProperty('shadowMode');
  });

  it('has the sign of hits, whatever applies to the descriptor', () => {
    const negative = { hitsAddend: 2, isNegativeHits: true };
    const each = ['user=anna', 'free=x', 'other=x'].map((text) => request('shop', [descriptor(text, negative)]));
    const reasons = recordsOf(each).map(({ descriptors }) => descriptors);
    expect(reasons).toMatchObject([
      ...['negative_hits', 'unlimited', 'no_match'].map((reason) => [{ hits: 2, isNegativeHits: true, reason }]),
    ]);
    for (const record of recordsOf([request('shop', ['user=anna', 'other=x'])])) {
      expect(JSON.stringify(record)).not.toContain('isNegativeHits');
    }
  });

  it('has the error and the rules of a call that failed', () => {
    const failure = new DecisionError('store_timeout', 'the counter store did not reply in time');
    const { code, message } = failure;
    const descriptors = [{ entries: ['user=anna'], rule: 'shop.user' }];
    const [record] = recordsOf([request('shop', ['user=anna'])], { failure });
    expect(record).toMatchObject({ domain: 'shop', error: { code, message }, descriptors });
    expect(record).not.toHaveProperty('code');
  });

  it.each([
    [{ remoteAddress: '10.0.0.7', remotePort: 5123 }, '10.0.0.7:5123'],
    [{ remoteAddress: '::1', remotePort: 5123 }, '[::1]:5123'],
    [{}, undefined],
  ])('has the address of the caller %j as %s', (peer, address) => {
    const [record] = recordsOf([request('shop', ['user=anna'])], { observer: { caller: { peer } } });
    expect(record?.['caller']).toBe(address);
  });

  it('has the trace of the call, or else that of its caller', () => {
    const [traced, called] = ['a'.repeat(32), 'b'.repeat(32)] as const;
    const caller = {
      metadata: (name: string) => (name === 'traceparent' ? `00-${called}-${'1'.repeat(16)}-00` : undefined),
    };
    const requests = [request('shop', ['user=anna'])];
    const trace = { traceId: traced, ended: () => undefined };
    expect(recordsOf(requests, { observer: { caller, trace } })).toMatchObject([{ traceId: traced }]);
    expect(recordsOf(requests, { observer: { caller } })).toMatchObject([{ traceId: called }]);
  });

  it('shows every character of a text in its place', () => {
    const entries = [{ key: HOSTILE, value: 'x' }];
    const hostile = { ...request('shop', ['user=x']), domain: HOSTILE };
    const [line = '', ...more] = linesOf([{ ...hostile, descriptors: [{ ...hostile.descriptors[0]!, entries }] }]);
    expect([line.split(SHOWN).length, more]).toEqual([3, []]);
    expect(line).not.toMatch(CONTROL);
    expect(parseDecisionLine(line)).toMatchObject({ domain: HOSTILE, descriptors: [{ entries: [`${HOSTILE}=x`] }] });
    // All of ASCII but for one character.
    expect(linesOf([request('shop', ['user=\u007f'])])[0]).toContain(String.raw`user=\u007f`);
  });

  it('has the terms of a reservation that was asked for', () => {
    const reservation = { id: 'call-1', ttl: 1500, onExpiry: 'cancel' } as const;
    const [asked] = recordsOf([request('shop', ['user=anna'])], { observer: { reservation } });
    expect(asked).toMatchObject({ reservation: 'call-1', ttl: '1.5s', onExpiry: 'cancel' });
    const [ended] = recordsOf([request('shop', ['user=anna'])], { observer: { reservation: { id: 'call-1' } } });
    expect(ended).not.toHaveProperty('ttl');
  });

  it('has a time in the second in which the call was begun, also when the store answered later', () => {
    const requests = [request('shop', ['user=anna'])];
    const times = [0, 999, 1000, 5000].map((late) => recordsOf(requests, { options: { now: () => NOW + late } }));
    expect(times.flat().map(({ time }) => time)).toEqual([
      '2023-11-14T00:00:10.000Z',
      ...['2023-11-14T00:00:10.999Z', '2023-11-14T00:00:10.999Z', '2023-11-14T00:00:10.999Z'],
    ]);
  });

  it('stays short, whatever a caller sends', () => {
    const long = '\u0001'.repeat(50_000);
    const many = Array.from({ length: 900 }, (_, index) => `user=${index}`);
    const deep = Array.from({ length: 100 }, () => `${'k'.repeat(300)}=v`).join(',');
    const records = recordsOf([
      request('shop', [`user=${long}`, ...many]),
      request(long, [`user=${long}`]),
      request('shop', [deep, deep]),
    ]);
    for (const record of records) expect(JSON.stringify(record).length).toBeLessThan(70_000);
    expect(records[0]).toMatchObject({ moreDescriptors: 881 });
    expect(records[0]?.['descriptors']).toMatchObject([
      { entries: [`user=${long.slice(0, 256)}…`] },
      ...many.slice(0, 19).map(() => ({})),
    ]);
    expect(records[2]).toMatchObject({ descriptors: [{ moreEntries: 80 }, { moreEntries: 80 }] });
  });
});

describe('the decision log', () => {
  const over = { count: 6, options: { which: 'denied' } } as const;

  it('has only decisions over a limit with denied, also those that shadow mode lets pass', () => {
    const requests = ['user=anna', 'shadow=x', 'free=x', 'other=x'].map((each) => request('shop', [each]));
    expect(recordsOf(requests, over)).toHaveLength(2);
    expect(recordsOf(requests, { ...over, limiter: { shadowMode: true } })).toHaveLength(2);
    expect(recordsOf(requests, { ...over, count: 5 })).toEqual([]);
    const negative = descriptor('shadow=x', { hitsAddend: 1, isNegativeHits: true });
    expect(recordsOf([request('shop', [negative])], over)).toEqual([]);
    expect(recordsOf([request('shop', ['part=x'])], over)).toMatchObject([
      { code: 'OK', descriptors: [{ reason: 'over_limit', shadowMode: true, currentLimit: { unit: 'MINUTE' } }] },
    ]);
    const unanswered = { ...over, operationFailure: new DecisionError('store_failed', 'failed') };
    expect(recordsOf([request('shop', ['denied=x'])], unanswered)).toMatchObject([
      { code: 'OK', descriptors: [{ reason: 'store_unavailable', policy: 'deny', shadowMode: true }] },
    ]);
    expect(recordsOf(requests, { ...over, failure: new DecisionError('store_failed', 'failed') })).toEqual([]);
  });

  it('has as many decisions as its sample says', () => {
    const requests = Array.from({ length: 100 }, () => request('shop', ['user=anna']));
    let drawn = 0;
    function random() {
      drawn += 37;
      return (drawn % 100) / 100;
    }
    for (const sample of [0, 0.25, 1]) {
      const records = recordsOf(requests, { options: { sample, random } });
      expect(records).toHaveLength(100 * sample);
      for (const record of records) expect(record['sample']).toBe(sample === 1 ? undefined : sample);
    }
  });

  it('has the requests that were rejected before they were decided, with all only', () => {
    const written: string[] = [];
    for (const which of ['all', 'denied'] as const) {
      const lines = new BoundedLines({ write: (text) => void written.push(text) });
      const log = decisionLines({ ...COMPLETE, which, lines });
      log.rejected(request('', ['user=anna']), new DecisionError('invalid_request', 'no domain'), NO_CALLER);
    }
    expect(written).toHaveLength(1);
    expect(parseDecisionLine(written[0]!)).toMatchObject({
      error: { code: 'invalid_request' },
      descriptors: [{ entries: ['user=anna'] }],
    });
  });

  it('builds no line while there is no space for one, and counts it', () => {
    let dropped = 0;
    const lines = new BoundedLines({ write: () => undefined }, { maxWaiting: 100 });
    lines.onDropped((count) => (dropped += count));
    lines.write(`${'x'.repeat(99)}\n`);
    const decision = new Limiter(DEFAULT_OPTIONS, new Statistics(1)).begin(request('shop', ['free=x']), RULESET, NOW);
    const now = jest.fn(() => NOW);
    decisionLines({ ...COMPLETE, lines, now }).decided(decision, decision.verdict(), NO_CALLER);
    expect(dropped).toBe(1);
    expect(now).not.toHaveBeenCalled();
  });
});

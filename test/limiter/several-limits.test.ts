import type { AlgorithmLimit } from '../../src/counting/algorithms/algorithm';
import type { LimiterOptions } from '../../src/limiter/options';
import { HeavyHitters } from '../../src/limiter/heavy-hitters';
import type { Descriptor } from '../../src/limiter/request';
import { Code, type Verdict } from '../../src/limiter/verdict';
import { unitByName } from '../../src/rules/unit';
import { modelOf } from '../counting/algorithm-models';
import fc from '../support/data/properties';
import { descriptor } from '../support/data/requests';
import { type RuleSketch, limit, rulesetOf } from '../support/data/rules';
import type { TestService } from '../support/data/service';
import { call, hits, serve } from './serve';

/** The beginning of five minutes, and of an hour in Tokyo. */
const START = 1_764_000_000_000;
const SHORT = limit(2, 'SECOND', { name: 'short' });
const LONG = limit(5, 'MINUTE', { unitMultiplier: 5, name: 'long' });
const HEADERS = { responseHeaders: { limit: 'limit', remaining: 'remaining', reset: 'reset' } };
/** Calls of one second, of which two are allowed, and the next second. */
const SECOND = ['k=x', 'k=x', 'k=x', 'k=x', 1];

/** Code, remaining, seconds until the reset and requests per unit of what is shown. */
type Answer = readonly [isAllowed: boolean, remaining: number, reset: number, requestsPerUnit: number];

function answerOf({ statuses: [status] }: Verdict): Answer {
  const { code, limitRemaining, secondsUntilReset, currentLimit } = status!;
  return [code === Code.OK, limitRemaining, secondsUntilReset!, currentLimit!.requestsPerUnit];
}

/** An answer in short: `OK 1/2 60` for the limit of 2 with one left, and 60 seconds to the reset. */
function textOf([isAllowed, remaining, reset, requestsPerUnit]: Answer): string {
  return `${isAllowed ? 'OK' : 'OVER'} ${remaining}/${requestsPerUnit} ${reset}`;
}

/**
 * A service with a rule for the key `k` of 2 per second and 5 per five minutes. The rule for `other` replaces the limit
 * per second.
 */
function serveRule(rule: Partial<RuleSketch>, options: Partial<LimiterOptions> = {}): TestService {
  const other = { key: 'other', rateLimit: limit(9, 'MINUTE', { replaces: ['short'] }) };
  return serve([{ key: 'k', rateLimits: [SHORT, LONG], ...rule }, other], { ...HEADERS, ...options }, START);
}

/** Sends requests, with the descriptors as text, and lets seconds pass. */
function play(
  rule: Partial<RuleSketch>,
  steps: readonly (string | number | Descriptor)[],
  options: Partial<LimiterOptions> = {},
) {
  const service = serveRule(rule, options);
  const verdicts = steps.flatMap((step) => {
    if (typeof step !== 'number') return [call(service, ...(typeof step === 'string' ? step.split(' ') : [step]))];
    service.now += step * 1000;
    return [];
  });
  const statistics: Record<string, Record<string, number>> = {};
  for (const [name, value] of Object.entries(service.moved())) {
    const [, key = '', statistic = ''] = /^shop\.(k.*)\.(\w+)$/.exec(name) ?? [];
    if (key !== '') (statistics[key] ??= {})[statistic] = value;
  }
  return {
    verdicts,
    answers: verdicts.map((verdict) => textOf(answerOf(verdict))).join(', '),
    /** A `+` for each call that is within the limits, a `-` for the others. */
    passed: verdicts.map(({ statuses }) => (statuses[0]!.code === Code.OK ? '+' : '-')).join(''),
    statistics,
    now: service.now,
  };
}

it('two limits of a rule answer as two models do, of which the most restrictive one is shown', () => {
  const anyLimit = fc.record({
    name: fc.constantFrom(undefined, 'sliding_window', 'token_bucket'),
    requestsPerUnit: fc.integer({ min: 0, max: 9 }),
  });
  const anyCall = fc.record({
    pause: fc.constantFrom(0, 0, 1, 300, 1000, 7_000, 61_000),
    count: fc.constantFrom(1, 1, 1, 2, 3, 0, -1),
  });
  const UNITS = ['MINUTE', 'SECOND'] as const;
  fc.assert(
    fc.property(fc.tuple(anyLimit, anyLimit), fc.array(anyCall, { minLength: 1, maxLength: 20 }), (sketches, calls) => {
      const rateLimits = sketches.map(({ name, requestsPerUnit }, index) => {
        return limit(requestsPerUnit, UNITS[index]!, { algorithm: name });
      });
      const service = serve([{ key: 'k', rateLimits }], {}, START);
      const models = sketches.map(({ name, requestsPerUnit }, index) => {
        const { seconds: lengthSeconds } = unitByName(UNITS[index]!)!;
        return name === undefined
          ? windowModel(requestsPerUnit, lengthSeconds)
          : algorithmModel({ name, requestsPerUnit, lengthSeconds, burst: undefined });
      });
      for (const { pause, count } of calls) {
        service.now += pause;
        const answers = models.map((model) => model(count, service.now));
        expect(answerOf(call(service, hits('k=x', count)))).toEqual(mostRestrictive(answers));
      }
    }),
    { numRuns: 150 },
  );
});

type Model = (hits: number, now: number) => Answer;

function algorithmModel(of: AlgorithmLimit): Model {
  const model = modelOf(of);
  return (count, now) => {
    const { isAllowed, remaining, secondsUntilReset } = model.decide(BigInt(count), BigInt(now) * 1000n);
    return [isAllowed, remaining, secondsUntilReset, of.requestsPerUnit];
  };
}

function windowModel(most: number, lengthSeconds: number): Model {
  let [start, used] = [0, 0];
  return (count, now) => {
    const seconds = Math.floor(now / 1000);
    const begun = seconds - (seconds % lengthSeconds);
    if (begun !== start) [start, used] = [begun, 0];
    used = Math.max(0, used + count);
    return [count < 0 || used <= most, Math.max(0, most - used), start + lengthSeconds - seconds, most];
  };
}

function mostRestrictive(answers: readonly Answer[]): Answer {
  const denied = answers.filter(([isAllowed]) => !isAllowed);
  if (denied.length > 0) return denied.toSorted((one, other) => other[2] - one[2])[0]!;
  return answers.toSorted((one, other) => one[1] - other[1])[0]!;
}

describe('a rule with rate_limits', () => {
  it('counts each limit, and shows the most restrictive with the windows of all', () => {
    const { verdicts, answers, statistics } = play({}, ['k=x', 'k=x', 'k=x', 1, 'k=x', 1, 'k=x', 1, 'k=x']);
    expect(answers).toBe('OK 1/2 1, OK 0/2 1, OVER 0/2 1, OK 1/2 1, OK 0/5 298, OVER 0/5 297');
    expect(verdicts.at(-1)!.responseHeaders.map(({ value }) => value)).toEqual(['5, 2;w=1, 5;w=300', '0', '297']);
    expect(verdicts[0]!.responseHeaders[0]).toEqual({ key: 'limit', value: '2, 2;w=1, 5;w=300' });
    const moved = { total_hits: 6, within_limit: 5, over_limit: 1, near_limit: 1 };
    expect(statistics).toEqual({ 'k.second': moved, 'k.5minute': moved });
  });

  it('answers by the local cache when one limit is over, and counts on the others', () => {
    const cached = play({}, ['k=x', 'k=x', 'k=x', 'k=x'], { localCacheBytes: 100_000 });
    expect(cached.passed).toBe('++--');
    expect(cached.statistics).toMatchObject({
      'k.second': { over_limit_with_local_cache: 1, over_limit: 2 },
      'k.5minute': { within_limit: 4 },
    });
  });

  it('is enforced for a share of the callers as a whole, and in shadow mode for the others', () => {
    const { verdicts, statistics } = play({ enforcePercent: 0 }, ['k=x', 'k=x', 'k=x']);
    expect(verdicts.map(({ overallCode }) => overallCode)).toEqual([Code.OK, Code.OK, Code.OK]);
    expect(statistics).toMatchObject({ 'k.second': { shadow_mode: 1, over_limit: 1 } });
  });

  it('lists a caller once for a call that is over several limits', () => {
    const offenders = new HeavyHitters({ capacity: 10, windowSeconds: 3600 });
    const rateLimits = [limit(0, 'SECOND'), limit(0, 'MINUTE')];
    const { now } = play({ rateLimits }, ['k=x', 'k=x'], { offenders });
    expect(offenders.top({ limit: 10 }, now / 1000)).toMatchObject([{ limited: 2 }]);
  });

  it('shares its counters with share_threshold, and counts by value otherwise', () => {
    const shared = play({ value: 'x*', shareThreshold: true }, ['k=x1', 'k=x2', 'k=x3']);
    expect(shared.passed).toBe('++-');
    const apart = play({ value: 'x*', detailedMetric: true }, ['k=x1', 'k=x2', 'k=x3']);
    expect(apart.passed).toBe('+++');
    expect(apart.statistics).toMatchObject({ 'k_x1.second': { total_hits: 1 }, 'k_x2.5minute': { total_hits: 1 } });
  });
});

describe('a rule with all_or_nothing', () => {
  function together(...[rule, ...others]: Parameters<typeof play>) {
    return play({ allOrNothing: true, ...rule }, ...others);
  }

  it('counts a call that one limit denies on none, also not on that one', () => {
    const { answers, verdicts, statistics } = together({}, [...SECOND, ...SECOND, 'k=x', 'k=x']);
    expect(answers).toBe(
      'OK 1/2 1, OK 0/2 1, OVER 0/2 1, OVER 0/2 1, OK 1/2 1, OK 0/2 1, OVER 0/2 1, OVER 0/2 1, OK 0/5 298, OVER 0/5 298',
    );
    expect(verdicts.at(-1)!.responseHeaders.map(({ value }) => value)).toEqual(['5, 2;w=1, 5;w=300', '0', '298']);
    expect(statistics).toEqual({
      'k.second': { total_hits: 10, within_limit: 5, over_limit: 4, near_limit: 2 },
      // The fifth call that is counted is near the limit.
      'k.5minute': { total_hits: 10, within_limit: 5, over_limit: 1, near_limit: 1 },
    });
  });

  it('does not count what is over a limit in shadow mode either', () => {
    const { passed, statistics } = together({ shadowMode: true }, [...SECOND, ...SECOND, 'k=x', 'k=x']);
    expect(passed).toBe('++++++++++');
    expect(statistics).toMatchObject({ 'k.second': { shadow_mode: 4 }, 'k.5minute': { shadow_mode: 1 } });
  });

  it('reads the other limits when one is over in the local cache, and caches each limit until it is free', () => {
    const cached = together({}, [...SECOND, 'k=x', ...SECOND, ...SECOND], { localCacheBytes: 100_000 });
    expect(cached.passed).toBe('++--++---+---');
    expect(cached.statistics).toMatchObject({
      'k.second': { over_limit_with_local_cache: 3 },
      'k.5minute': { over_limit_with_local_cache: 2 },
    });
  });

  it('begins to count at 0 when it is switched on, at fixed windows', () => {
    const service = serveRule({});
    const left = [false, true, false].flatMap((allOrNothing) => {
      service.ruleset = rulesetOf('shop', { key: 'k', rateLimits: [LONG], allOrNothing });
      return [1, 2].map(() => answerOf(call(service, 'k=x'))[1]);
    });
    expect(left).toEqual([4, 3, 4, 3, 2, 1]);
  });
});

describe.each([
  ['rate_limits', {}],
  ['all_or_nothing', { allOrNothing: true }],
])('the limits of a rule with %s', (_, mode) => {
  it('are replaced one by one, and by a limit in the request as a whole', () => {
    const { answers } = play(mode, ['k=x other=y', 'k=x other=y', 'k=x other=y', 'k=x']);
    expect(answers).toBe('OK 4/5 300, OK 3/5 300, OK 2/5 300, OK 1/2 1');
    const sent = descriptor('k=x', { limit: { requestsPerUnit: 100, unit: unitByName('HOUR') } });
    const overridden = play(mode, [sent, sent]);
    expect(overridden.answers).toBe('OK 99/100 3600, OK 98/100 3600');
    expect(Object.keys(overridden.statistics).every((name) => name === 'k_x')).toBe(true);
  });

  it('may have a window of the calendar, which is shown when it is the most restrictive', () => {
    const day = limit(3, 'DAY', { calendar: { timeZone: 'Asia/Tokyo', startsOn: 1 } });
    const { answers, now } = play({ ...mode, rateLimits: [SHORT, day] }, ['k=x', 'k=x', 1, 'k=x', 1, 'k=x']);
    const untilMidnight = 86_400 - ((now / 1000 + 9 * 3600) % 86_400);
    expect(answers).toBe(`OK 1/2 1, OK 0/2 1, OK 0/3 ${untilMidnight + 1}, OVER 0/3 ${untilMidnight}`);
  });
});

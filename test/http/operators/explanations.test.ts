import { setImmediate } from 'node:timers/promises';
import { NEVER, asyncScheduler, throwError } from 'rxjs';
import type { LimiterOptions } from '../../../src/limiter/decision';
import { DecisionError } from '../../../src/counting/decision-error';
import { Limiter } from '../../../src/limiter/limiter';
import { LocalCounts } from '../../../src/limiter/local-counts';
import type { Descriptor, RateLimitRequest } from '../../../src/limiter/request';
import { CODE_NAMES, Code, type Verdict } from '../../../src/limiter/verdict';
import { LocalDecisions } from '../../../src/operators/decisions';
import type { DomainConfig } from '../../../src/rules/rule-config';
import { type Ruleset, buildRuleset } from '../../../src/rules/ruleset';
import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import { Statistics } from '../../../src/statistics/statistics';
import { decisions as decisionsOf } from '../../../src/streams/decisions';
import type { DecisionOperator } from '../../../src/operators/decisions';
import { descriptor, request } from '../../support/data/requests';
import { type RuleSketch, domainConfig, limit, ruleConfig, unlimited } from '../../support/data/rules';
import { DEFAULT_OPTIONS, TestService } from '../../support/data/service';
import { ServedApi, always, configOf, rulesetOf } from './served-api';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors:\n- { key: user, rate_limit: { unit: day, requests_per_unit: 5 } }\n',
};

function requestOf(...keys: readonly string[]): RequestInit {
  const descriptors = keys.map((key) => ({ entries: [{ key, value: 'x' }] }));
  return { method: 'POST', body: JSON.stringify({ domain: 'shop', descriptors }) };
}

/** 1,000 requested keys that are near to those of 5,000 rules. */
function nearMisses(): { readonly ruleset: Ruleset; readonly keys: readonly string[] } {
  const name = 'k'.repeat(50);
  const rules = Array.from({ length: 5_000 }, (_, index) => ({ key: `${name}${index}` }));
  const keys = Array.from({ length: 1_000 }, (_, index) => `_${name}${index}`);
  return { ruleset: buildRuleset([domainConfig('shop', ...rules)]), keys };
}

it('1,000 near misses are explained with bounded lists', async () => {
  const { ruleset, keys } = nearMisses();
  await using api = await ServedApi.start({ ruleset });
  const { descriptors } = Object(await api.json('/api/explanations', requestOf(...keys)));
  const listed: readonly number[] = descriptors.map(({ steps }: { steps: { keys: [] }[] }) => steps[0]!.keys.length);
  expect([listed[0], listed.reduce((sum, count) => sum + count)]).toEqual([20, 2_000]);
  expect(descriptors.filter(({ nearest }: { nearest: unknown }) => nearest !== null)).toHaveLength(20);
});

it('a descriptor whose rule is replaced names the rule that replaces it', async () => {
  const ruleset = rulesetOf({
    'shop.yaml': [
      'domain: shop',
      'descriptors:',
      '- { key: user, rate_limit: { unit: day, requests_per_unit: 5, name: each } }',
      '- { key: team, rate_limit: { unit: day, requests_per_unit: 5, replaces: [{ name: each }] } }',
    ].join('\n'),
  });
  await using api = await ServedApi.start({ ruleset });
  const { descriptors } = Object(await api.json('/api/explanations', requestOf('none', 'user', 'team')));
  const [, replaced, replacing] = descriptors;
  expect(replaced.reason).toBe('the rule is not applied, because shop.team replaces it');
  expect(replacing.replacedBy).toBeNull();
});

it('a turn of the event loop ends with the descriptor during which its time is over', async () => {
  const { ruleset, keys } = nearMisses();
  const { limiter, counters, apply } = new TestService(ruleset);
  const offenders = { top: () => Promise.resolve([]) };
  const config$ = always(configOf(ruleset));
  const decisions = new LocalDecisions({
    ...{ config$, limiter, administration: counters, reservations: counters, apply, offenders },
  });
  let now = 0;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => (now += 5));
  let turns = 0;
  let isDone = false;
  const descriptors = keys.map((key) => ({
    entries: [{ key, value: 'x' }],
    limit: undefined,
    hitsAddend: -1,
    isNegativeHits: false,
  }));
  const explained = decisions.explain({ domain: 'shop', descriptors, hitsAddend: 0 }).finally(() => (isDone = true));
  while (!isDone) {
    await setImmediate();
    turns += 1;
  }
  clock.mockRestore();
  expect((await explained).descriptors).toHaveLength(1_000);
  expect(turns).toBeGreaterThanOrEqual(1_000);
});

/** A service with these rules, and its decisions as operators see them. */
function operated(...rules: readonly RuleSketch[]) {
  return operatedWith({}, domainConfig('shop', ...rules));
}

function operatedWith(options: Partial<LimiterOptions>, domain: DomainConfig) {
  const ruleset = buildRuleset([domain]);
  const service = new TestService(ruleset, options);
  const { limiter, counters: administration, apply } = service;
  const offenders = { top: () => Promise.resolve([]) };
  const config$ = always(configOf(ruleset));
  return {
    service,
    decisions: new LocalDecisions({ config$, limiter, administration, reservations: administration, apply, offenders }),
  };
}

it('each limit of a rule with several is explained, and its counter is shown, set and cleared by its window', async () => {
  const rateLimits = [
    limit(4, 'HOUR', { algorithm: 'sliding_window' }),
    limit(60, 'MINUTE', { unitMultiplier: 5, algorithm: 'token_bucket' }),
  ];
  const { service, decisions } = operated({ key: 'k', rateLimits });
  const query = { domain: 'shop', descriptor: descriptor('k=x') };
  service.decide(request('shop', ['k=x'], 3));
  const { descriptors } = await decisions.explain(request('shop', ['k=x'], 1));
  const { counter, otherCounters, status } = descriptors[0]!;
  expect(counter).toMatchObject({ unit: 'HOUR', count: 3, countAfter: 4 });
  expect(otherCounters).toMatchObject([{ unit: 'MINUTE', unitMultiplier: 5, count: 3, countAfter: 4 }]);
  expect(status).toMatchObject({ code: 'OK', limitRemaining: 0 });

  const reason = 'the rule has several limits; choose one by the parameter window: hour, 5minute';
  const windows = ['hour', '5minute'];
  expect(await decisions.readCounter(query)).toMatchObject({ window: 'hour', windows, count: 3 });
  for (const window of ['day', undefined]) {
    expect(await decisions.changeCounter({ ...query, window }, 1)).toEqual({ reason, nearest: null, windows });
  }
  expect(await decisions.readCounter({ ...query, window: 'day' })).toEqual({ reason, nearest: null, windows });
  const [hour, bucket] = windows.map((window) => ({ ...query, window }));
  expect(await decisions.changeCounter(hour!, 1)).toMatchObject({ countBefore: 3, count: 1 });
  expect(await decisions.readCounter(bucket!)).toMatchObject({ algorithm: 'token_bucket', count: 57 });
  expect(await decisions.changeCounter(bucket!, null)).toMatchObject({ countBefore: 57, count: 60 });
});

it('hits that are not counted are explained by what keeps them from it', async () => {
  const rules = [
    { key: 'k', rateLimit: limit(5, 'YEAR') },
    { key: 'banned', rateLimit: limit(0, 'YEAR') },
  ];
  const unmatched = ruleConfig({ key: 'on_unmatched', value: 'deny', rateLimit: unlimited({ unlimited: false }) });
  const { decisions } = operatedWith(
    { stopIncrementWhenOverLimit: true },
    { ...domainConfig('shop', ...rules), unmatched },
  );
  async function reasons(...texts: readonly (string | Descriptor)[]) {
    return (await decisions.explain(request('shop', texts))).descriptors.map(({ reason }) => reason);
  }
  const stay = 'the count would stay 0, because';
  const set = 'and STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is set';
  const over = 'the count would be 1 after 1 hit, over the limit of 0';
  expect(await reasons('k=x', 'banned=x')).toEqual([`${stay} another limit is over ${set}`, over]);
  const denied = 'no rule matches, and on_unmatched denies that';
  expect(await reasons('none=x', 'k=x')).toEqual([denied, `${stay} another descriptor is denied ${set}`]);
  const many = descriptor('k=x', { hitsAddend: 7 });
  expect(await reasons('none=x', many)).toEqual([denied, 'the count would be 7 after 7 hits, over the limit of 5']);
});

it('a rule with all_or_nothing is explained as a decision answers, and its counters are shown and changed', async () => {
  const rateLimits = [limit(2, 'YEAR'), limit(9, 'HOUR', { algorithm: 'sliding_window' })];
  const { service, decisions } = operated({ key: 'k', rateLimits, allOrNothing: true });
  // Explanations are of now. The year is not over before the test is, but for once in a year.
  service.now = Date.now();
  service.decide(request('shop', ['k=x'], 1));
  async function explained(hits: number) {
    const { descriptors } = await decisions.explain(request('shop', ['k=x'], hits));
    const { counter, otherCounters, status, reason } = descriptors[0]!;
    const counts = [counter!, ...otherCounters].map(({ unit, count, countAfter }) => [unit, count, countAfter]);
    return { counts, code: status!.code, left: status!.limitRemaining, reason };
  }
  expect(await explained(1)).toEqual({
    ...{ code: 'OK', left: 0, reason: 'the count would be 2 after 1 hit, within the limit of 2' },
    counts: [
      ['YEAR', 1, 2],
      ['HOUR', 1, 2],
    ],
  });
  expect(await explained(2)).toEqual({
    ...{ code: 'OVER_LIMIT', left: 1, reason: '1 of at most 2 hits count, so that 2 hits would be too many' },
    counts: [
      ['YEAR', 1, 1],
      ['HOUR', 1, 1],
    ],
  });
  const query = { domain: 'shop', descriptor: descriptor('k=x'), window: 'year' };
  expect(await decisions.readCounter(query)).toMatchObject({ algorithm: null, count: 1, requestsPerUnit: 2 });
  expect(await decisions.changeCounter(query, 2)).toMatchObject({ countBefore: 1, count: 2 });
  expect(service.decide(request('shop', ['k=x'], 1)).overallCode).toBe(Code.OVER_LIMIT);
  expect(await decisions.changeCounter(query, null)).toMatchObject({ countBefore: 2, count: 0 });
  expect(await decisions.readCounter({ ...query, window: 'hour' })).toMatchObject({ count: 1 });
});

it('what is left in a bucket is shown, set and cleared, and explained', async () => {
  const rateLimit = limit(60, 'MINUTE', { algorithm: 'token_bucket', burst: 10 });
  const sliding = limit(60, 'MINUTE', { algorithm: 'sliding_window' });
  const { service, decisions } = operated({ key: 'k', rateLimit }, { key: 's', rateLimit: sliding });
  const query = { domain: 'shop', descriptor: descriptor('k=x') };
  const window = { domain: 'shop', descriptor: descriptor('s=x') };
  service.decide(request('shop', ['k=x', 's=x'], 3));
  const shown = { algorithm: 'token_bucket', burst: 10, requestsPerUnit: 60, timeToLive: null };
  expect(await decisions.readCounter(query)).toMatchObject({ ...shown, count: 7 });
  const ofWindow = { algorithm: 'sliding_window', burst: null, count: 3 };
  expect(await decisions.readCounter(window)).toMatchObject(ofWindow);

  async function reasonOf(hits: number): Promise<unknown> {
    const { descriptors } = await decisions.explain(request('shop', ['k=x'], hits));
    const { counter, status, reason } = descriptors[0]!;
    return [counter?.count, counter?.countAfter, status?.code, status?.limitRemaining, reason];
  }
  const within = 'the count would be 5 after 2 hits, within the limit of 10';
  expect(await reasonOf(2)).toEqual([3, 5, 'OK', 5, within]);
  const over = '3 of at most 10 hits count, so that 8 hits would be too many';
  expect(await reasonOf(8)).toEqual([3, 3, 'OVER_LIMIT', 7, over]);

  expect(await decisions.changeCounter(query, 2)).toMatchObject({ countBefore: 7, count: 2 });
  expect(service.decide(request('shop', ['k=x'], 2)).statuses[0]).toMatchObject({ limitRemaining: 0 });
  expect(await decisions.changeCounter(query, 99)).toMatchObject({ countBefore: 0, count: 10 });
  service.decide(request('shop', ['k=x'], 4));
  expect(await decisions.changeCounter(query, null)).toMatchObject({ countBefore: 6, count: 10 });
  expect(await decisions.changeCounter(window, 50)).toMatchObject({ countBefore: 3, count: 50 });
  expect(await decisions.changeCounter(window, null)).toMatchObject({ countBefore: 50, count: 0 });
});

/** A store that counts, cannot be reached, or does not answer. */
class FailingStore extends MemoryCounters {
  state: 'counts' | 'away' | 'hangs' = 'counts';

  constructor() {
    super({ maxKeys: 100, windowSpan: 1, now: Date.now });
  }

  override apply(...parameters: Parameters<MemoryCounters['apply']>): ReturnType<MemoryCounters['apply']> {
    if (this.state === 'counts') return super.apply(...parameters);
    if (this.state === 'hangs') return NEVER;
    return throwError(() => new DecisionError('store_failed', 'there is no connection', { isUncounted: true }));
  }
}

/** A service whose store fails when a test lets it, with rules of every policy. */
function serviceThatFails() {
  const rateLimit = limit(10, 'YEAR');
  const ruleset = buildRuleset([
    domainConfig(
      'shop',
      { key: 'error', rateLimit },
      { key: 'allow', rateLimit, onStoreFailure: 'allow' },
      { key: 'banned', rateLimit: limit(0, 'YEAR'), onStoreFailure: 'allow' },
      { key: 'deny', rateLimit, onStoreFailure: 'deny' },
      { key: 'shadow', rateLimit, onStoreFailure: 'deny', shadowMode: true },
      { key: 'bucket', rateLimit: limit(10, 'YEAR', { algorithm: 'token_bucket' }), onStoreFailure: 'allow' },
      { key: 'local', rateLimit, onStoreFailure: 'local' },
      { key: 'pair', rateLimits: [limit(5, 'YEAR'), limit(9, 'MONTH')], onStoreFailure: 'local' },
    ),
  ]);
  const store = new FailingStore();
  const statistics = new Statistics(10);
  const dropped = statistics.counter('dropped');
  const local = new LocalCounts({ share: 2, reconciles: true, serverOf: () => store, dropped });
  const responseHeaders = { limit: 'limit', remaining: 'remaining', reset: 'reset' };
  const limiter = new Limiter({ ...DEFAULT_OPTIONS, local, responseHeaders }, statistics);
  const timeout = 50;
  const { decide, apply, windows$ } = decisionsOf({
    ...{ limiter, counters: store, statistics, scheduler: asyncScheduler, timeout, ruleset: () => ruleset },
    onInternalError: (error) => {
      throw error;
    },
  });
  windows$.subscribe();
  const decisions = new LocalDecisions({
    ...{ limiter, apply, timeout, config$: always(configOf(ruleset)) },
    ...{ administration: store, reservations: store, offenders: { top: () => Promise.resolve([]) } },
  });
  function call(called: RateLimitRequest): Promise<Verdict | DecisionError> {
    return new Promise((resolve) => decide(called, { verdict: resolve, error: resolve }));
  }
  return { store, decisions, call };
}

/** As an explanation has it. */
function asExplained(answer: Verdict | DecisionError) {
  if (answer instanceof DecisionError) return { error: answer.code };
  const { overallCode, statuses, responseHeaders } = answer;
  return {
    overallCode: CODE_NAMES[overallCode],
    statuses: statuses.map(({ code, limitRemaining }) => [CODE_NAMES[code], limitRemaining]),
    headers: withoutReset(responseHeaders),
  };
}

/** A second may pass between two answers. */
function withoutReset(headers: Verdict['responseHeaders']): Verdict['responseHeaders'] {
  return headers.filter(({ key }) => key !== 'reset');
}

describe.each(['away', 'hangs'] as const)('while the store %s', (state) => {
  const requests = [['error'], ['allow'], ['banned'], ['deny'], ['shadow'], ['bucket'], ['local'], ['pair']];
  const together = [
    ['local', 'local'],
    ['allow', 'deny', 'local'],
    ['allow', 'error'],
  ];

  it('a request is explained as a call is answered, and nothing is counted', async () => {
    const { store, decisions, call } = serviceThatFails();
    await call(request('shop', ['local=x', 'pair=x'], 4));
    store.state = state;
    for (const keys of [...requests, ...together]) {
      const asked = request(
        'shop',
        keys.map((key) => `${key}=x`),
        1,
      );
      const explanations = [await decisions.explain(asked), await decisions.explain(asked)];
      const answered = asExplained(await call(asked));
      for (const { answer, error, descriptors } of explanations) {
        const statuses = descriptors.map(({ status }) => status && [status.code, status.limitRemaining]);
        const explained = answer && {
          ...{ overallCode: answer.overallCode, statuses, headers: withoutReset(answer.responseHeaders) },
        };
        expect([keys, explained ?? { error: error?.code }]).toEqual([keys, answered]);
      }
    }
  });

  it('an explanation names the policy that answers, and the count of this instance where that is `local`', async () => {
    const { store, decisions, call } = serviceThatFails();
    await call(request('shop', ['local=x'], 4));
    store.state = state;
    const keys = ['allow', 'deny', 'local', 'shadow'];
    const { answer, descriptors } = await decisions.explain(
      request(
        'shop',
        keys.map((key) => `${key}=x`),
        1,
      ),
    );
    const why = state === 'away' ? 'there is no connection' : 'the counter store did not answer in time';
    expect(answer).toMatchObject({ overallCode: 'OVER_LIMIT', reason: 'descriptor 2 is denied' });
    expect(descriptors.map(({ reason, counter }) => [counter?.answeredByPolicy, counter?.count, reason])).toEqual([
      ['allow', null, `${why}, so that the policy allow answers`],
      ['deny', null, `${why}, so that the policy deny answers`],
      ['local', 4, `${why}, so that this instance counts: the count would be 5 after 1 hit, within the limit of 10`],
      ['deny', null, `${why}, so that the policy deny answers`],
    ]);
    const allowed = await decisions.explain(request('shop', ['allow=x'], 1));
    expect(allowed.answer?.reason).toBe('no descriptor is over its limit, as far as they could be counted');
  });
});

it('requests are explained one after the other, and those that wait are limited', async () => {
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  let running = 0;
  let most = 0;
  const decisions = {
    explain: async () => {
      most = Math.max(most, (running += 1));
      await gate;
      running -= 1;
      return { domain: 'shop' };
    },
  } as unknown as DecisionOperator;
  await using api = await ServedApi.start({ decisions });
  const sent = Array.from({ length: 21 }, () => api.send('/api/explanations', requestOf('user')));
  const busy = await Promise.race(sent);
  expect([busy.status, await busy.json()]).toMatchObject([429, { code: 'busy' }]);
  open();
  const answers = await Promise.all(sent);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(20);
  expect(most).toBe(1);
  expect(await api.json('/api/explanations', requestOf('user'))).toEqual({ domain: 'shop' });
});

it('a descriptor of 170,000 levels is answered with 400', async () => {
  await using api = await ServedApi.start({ ruleset: rulesetOf(RULES) }, () => 'token-of-operators-1');
  const nested = `${'{"a":'.repeat(170_000)}1${'}'.repeat(170_000)}`;
  const response = await api.send('/api/counters', {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json', Authorization: 'Bearer token-of-operators-1' },
    body: `{"domain":"shop","descriptor":${nested},"count":1}`,
  });
  expect([response.status, await response.json()]).toMatchObject([400, { code: 'invalid_request' }]);
});

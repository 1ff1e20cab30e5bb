import { asyncScheduler } from 'rxjs';
import { DecisionError } from '../../src/counting/decision-error';
import { DEFAULT_OPTIONS } from '../../src/limiter/options';
import { Limiter } from '../../src/limiter/limiter';
import { NO_OFFENDERS } from '../../src/limiter/offender';
import { Watches } from '../../src/operators/fleet/watches';
import { LocalCounts } from '../../src/limiter/local-counts';
import type { Descriptor, RateLimitRequest } from '../../src/limiter/request';
import { CODE_NAMES, type Verdict } from '../../src/limiter/verdict';
import { LocalDecisions } from '../../src/operators/decisions';
import type { DomainConfig } from '../../src/rules/rule-config';
import { buildRuleset } from '../../src/rules/ruleset';
import { MemoryCounters } from '../../src/sinks/counters/memory/memory-counters';
import { Statistics } from '../../src/statistics/statistics';
import { decisions as decisionsOf } from '../../src/streams/decisions';
import { descriptor, request } from '../support/data/requests';
import { type RuleSketch, domainConfig, limit, ruleConfig, unlimited } from '../support/data/rules';
import { always, configOf } from '../http/operators/served-api';
import { turnsDuring } from '../support/waiting/turns';
import { operated, operatedWith } from './operated';

/** A call with one hit for each of some keys. */
function calling(...keys: readonly string[]): RateLimitRequest {
  const texts = keys.map((key) => `${key}=x`);
  return request('shop', texts, 1);
}

/** 1,000 requested keys that are near to those of 5,000 rules. */
function nearMisses(): { readonly domain: DomainConfig; readonly keys: readonly string[] } {
  const name = 'k'.repeat(50);
  const rules = Array.from({ length: 5_000 }, (_, index) => ({ key: `${name}${index}` }));
  const keys = Array.from({ length: 1_000 }, (_, index) => `_${name}${index}=x`);
  return { domain: domainConfig('shop', ...rules), keys };
}

it('1,000 near misses are explained with bounded lists, in a turn of the event loop for each that takes long', async () => {
  const { domain, keys } = nearMisses();
  const { decisions } = operatedWith({}, domain);
  let now = 0;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => (now += 5));
  const explained = decisions.explain(request('shop', keys, 1));
  expect(await turnsDuring(explained)).toBeGreaterThanOrEqual(1_000);
  clock.mockRestore();
  const { descriptors } = await explained;
  const listed = descriptors.map(({ steps }) => steps[0]!.keys.length);
  expect([listed.length, listed[0], listed.reduce((sum, count) => sum + count)]).toEqual([1_000, 20, 2_000]);
  expect(descriptors.filter(({ nearest }) => nearest !== null)).toHaveLength(20);
});

it('a descriptor whose rule is replaced names the rule that replaces it', async () => {
  const { decisions } = operated(
    { key: 'user', rateLimit: limit(5, 'DAY', { name: 'each' }) },
    { key: 'team', rateLimit: limit(5, 'DAY', { replaces: ['each'] }) },
  );
  const [, replaced, replacing] = (await decisions.explain(request('shop', ['none=x', 'user=x', 'team=x'], 1)))
    .descriptors;
  expect(replaced!.reason).toBe('the rule is not applied, because shop.team replaces it');
  expect(replacing!.replacedBy).toBeNull();
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

describe('the reason of an answer', () => {
  const rateLimit = limit(1, 'YEAR');
  const rules: readonly RuleSketch[] = [
    { key: 'limit', rateLimit },
    { key: 'quota', rateLimit, quotaMode: true },
    { key: 'used', rateLimit: limit(0, 'YEAR'), quotaMode: true },
    { key: 'banned', rateLimit: limit(0, 'YEAR') },
  ];

  it.each([
    ['descriptor 1 is over its quota, but not every quota is used up', ['used', 'quota'], true],
    ['descriptor 1 is over its quota, but not every quota is used up', ['used', 'quota'], false],
    ['descriptor 1 is over its quota, which SHADOW_MODE allows', ['used'], true],
    ['descriptor 2 is over its limit, which SHADOW_MODE allows', ['quota', 'banned'], true],
    ['no descriptor is over its limit', ['limit'], true],
  ])('that passes is: %s', async (reason, keys, shadowMode) => {
    const { decisions } = operatedWith({ shadowMode }, domainConfig('shop', ...rules));
    const { answer } = await decisions.explain(calling(...keys));
    expect(answer).toMatchObject({ overallCode: 'OK', reason });
  });
});

/** A store that counts, cannot be reached, or does not answer. */
class FailingStore extends MemoryCounters {
  state: 'counts' | 'away' | 'hangs' = 'counts';

  constructor() {
    super({ maxKeys: 100, windowSpan: 1, now: Date.now });
  }

  override apply(...parameters: Parameters<MemoryCounters['apply']>): ReturnType<MemoryCounters['apply']> {
    if (this.state === 'counts') return super.apply(...parameters);
    if (this.state === 'hangs') return new Promise(() => undefined);
    return Promise.reject(new DecisionError('store_failed', 'there is no connection', { isUncounted: true }));
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
  const local = new LocalCounts({ share: () => 2, reconciles: true, serverOf: () => store, dropped });
  const responseHeaders = { limit: 'limit', remaining: 'remaining', reset: 'reset' };
  const limiter = new Limiter({ ...DEFAULT_OPTIONS, local, responseHeaders }, statistics);
  const timeout = 50;
  const { decide, apply, windows$ } = decisionsOf({
    ...{ limiter, local, counters: store, statistics, scheduler: asyncScheduler, ruleset: () => ruleset },
    timeouts: { ofCalls: timeout, byPolicy: timeout },
    onInternalError: (error) => {
      throw error;
    },
  });
  windows$.subscribe();
  const decisions = new LocalDecisions({
    ...{ limiter, apply, timeout, config$: always(configOf(ruleset)) },
    watches: new Watches(undefined, () => undefined),
    ...{ administration: store, reservations: store, offenders: { summary: () => Promise.resolve(NO_OFFENDERS) } },
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
      const asked = calling(...keys);
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
    const { answer, descriptors } = await decisions.explain(calling('allow', 'deny', 'local', 'shadow'));
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

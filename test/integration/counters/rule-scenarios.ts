import { DEFAULT_OPTIONS, type LimiterOptions } from '../../../src/limiter/options';
import { Limiter } from '../../../src/limiter/limiter';
import type { Descriptor } from '../../../src/limiter/request';
import { Code, type Verdict } from '../../../src/limiter/verdict';
import { turnScheduler } from '../../../src/main/turn-scheduler';
import { ALGORITHMS } from '../../../src/rules/rule-config';
import type { Ruleset } from '../../../src/rules/ruleset';
import { Statistics } from '../../../src/statistics/statistics';
import { type Decisions, decisions } from '../../../src/streams/decisions';
import type { Counters } from '../../../src/streams/ports/counters';
import type { PendingDecision } from '../../../src/streams/ports/decide';
import { descriptor, request } from '../../support/data/requests';
import { limit, rulesetOf } from '../../support/data/rules';
import { clock } from './scenarios';

const MINUTE = 60_000;

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

  /** Decides without waiting for the outcome, and delivers it to nobody. */
  begin(domain: string, descriptors: readonly (string | Descriptor)[]): PendingDecision {
    return this.#decisions.decide(request(domain, descriptors), { verdict: () => undefined, error: () => undefined });
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}

let domains = 0;

/** Plays postpaid limits on a store. */
export function postpaidLimits(
  store: () => Counters,
  names: readonly (typeof ALGORITHMS)[number][] = ALGORITHMS,
): void {
  it.each(names)('20 asks, and reports of 600 after those that pass, pass 2 times a %s of 1,000', async (name) => {
    const domain = `domain-${(domains += 1)}`;
    const algorithm = name === 'fixed_window' ? undefined : name;
    const rateLimits = [limit(1_000, 'HOUR', { algorithm, postpaid: true }), limit(1e6, 'DAY', { postpaid: true })];
    using service = new Service(rulesetOf(domain, { key: 'k', rateLimits }), store());
    const answers: string[] = [];
    for (let asked = 0; asked < 20; asked += 1) {
      const answer = shownLimit(await service.decide(domain, ['k=x']));
      answers.push(answer);
      if (answer.startsWith('OK')) await service.decide(domain, [descriptor('k=x', { hitsAddend: 600 })]);
    }
    const denied = Array.from({ length: 18 }, () => 'OVER 0 of 1000');
    expect(answers).toEqual(['OK 1000 of 1000', 'OK 400 of 1000', ...denied]);
    // Calls of one turn, which a store receives as one batch.
    const hits = [0, 100, 0, 300, 0];
    const atOnce = await Promise.all(
      hits.map((hitsAddend) => service.decide(domain, [descriptor('k=y', { hitsAddend })])),
    );
    expect(atOnce.map((verdict) => verdict.statuses[0]!.limitRemaining)).toEqual([1000, 900, 900, 600, 600]);
    const given = await service.decide(domain, [descriptor('k=x', { hitsAddend: 250, isNegativeHits: true })]);
    const after = await service.decide(domain, ['k=x']);
    expect([given, after].map((verdict) => shownLimit(verdict))).toEqual(['OK 50 of 1000', 'OK 50 of 1000']);
  });
}

/** Plays rules with `rate_limits` on a store. @param names of the second limit; the first is a fixed window */
export function severalLimits(store: () => Counters, names: readonly (typeof ALGORITHMS)[number][] = ALGORITHMS): void {
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

/** Plays limits above 32 bits on a store, also where an answer depends on the hits of other limits. */
export function largeLimits(store: () => Counters, hasAlgorithms = true): void {
  const LARGE = { key: 'large', rateLimit: limit(1e15, 'DAY') };
  const TOGETHER = { rateLimits: [limit(5e10, 'DAY'), limit(1e15, 'WEEK')], allOrNothing: true };

  function hits(key: string, hitsAddend: number): Descriptor {
    return descriptor(`${key}=x`, { hitsAddend });
  }

  async function play(calls: readonly (readonly Descriptor[])[], options: Partial<LimiterOptions> = {}) {
    const domain = `domain-${(domains += 1)}`;
    using service = new Service(rulesetOf(domain, LARGE, { key: 'both', ...TOGETHER }), store(), options);
    const answers: string[] = [];
    for (const each of calls) answers.push(shownLimit(await service.decide(domain, each)));
    return answers;
  }

  it('a limit of 10^15 counts to its last hit, also for calls that come at once', async () => {
    const domain = `domain-${(domains += 1)}`;
    using service = new Service(rulesetOf(domain, LARGE), store());
    const atOnce = [4e14, 4e14, 2e14 - 1, 1, 1].map((each) => service.decide(domain, [hits('large', each)]));
    expect((await Promise.all(atOnce)).map(shownLimit)).toEqual([
      'OK 600000000000000 of 1000000000000000',
      'OK 200000000000000 of 1000000000000000',
      'OK 1 of 1000000000000000',
      'OK 0 of 1000000000000000',
      'OVER 0 of 1000000000000000',
    ]);
    expect(shownLimit(await service.decide(domain, [hits('large', 8e15)]))).toMatch(/^OVER/);
  });

  it('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT judges by limits above 32 bits', async () => {
    const calls = [[hits('large', 1e15 - 1)], [hits('large', 2), hits('large', 0)], [hits('large', 0)]];
    expect(await play(calls, { stopIncrementWhenOverLimit: true })).toEqual([
      'OK 1 of 1000000000000000',
      'OVER 0 of 1000000000000000',
      'OVER 0 of 1000000000000000',
    ]);
  });
  if (!hasAlgorithms) return;
  it('a rule with all_or_nothing counts at limits above 32 bits', async () => {
    expect(await play([4e10, 2e10, 1e10, 1].map((each) => [hits('both', each)]))).toEqual([
      'OK 10000000000 of 50000000000',
      'OVER 10000000000 of 50000000000',
      'OK 0 of 50000000000',
      'OVER 0 of 50000000000',
    ]);
  });
}

/** Code and remaining of the first descriptor, and which of its limits is shown. */
function shownLimit({ statuses }: Verdict): string {
  const { code, limitRemaining, currentLimit } = statuses[0]!;
  return `${code === Code.OK ? 'OK' : 'OVER'} ${limitRemaining} of ${currentLimit!.requestsPerUnit}`;
}

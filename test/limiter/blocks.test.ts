import { HeavyHitters } from '../../src/limiter/heavy-hitters';
import type { Descriptor } from '../../src/limiter/request';
import { outcomeOf } from '../../src/limiter/resolution';
import type { RuleLimit } from '../../src/rules/rule-config';
import { type BlockConfig, unitByName } from '../../src/rules/unit';
import { descriptor, request } from '../support/data/requests';
import { type RuleSketch, limit } from '../support/data/rules';
import type { TestService } from '../support/data/service';
import { call, codes, hits, overall, perMinute, serve, shown } from './serve';

const MINUTE = 60_000;
const TWO_MINUTES: BlockConfig = { first: 120, factor: 1, most: 120, forgottenAfter: 0 };

function blocking(more: Partial<RuleLimit> = {}, rule: Partial<RuleSketch> = {}): RuleSketch {
  return { key: 'k', rateLimit: perMinute(2, { blockFor: TWO_MINUTES, ...more }), ...rule };
}

/** Codes and resets of calls that are sent one after the other. */
function played(service: TestService, ...texts: readonly (string | Descriptor | number)[]): readonly string[] {
  return texts.flatMap((text) => {
    if (typeof text === 'number') {
      service.now += text;
      return [];
    }
    const verdict = call(service, text);
    return [`${codes(verdict)[0]} ${verdict.statuses[0]!.secondsUntilReset}`];
  });
}

function reasons(service: TestService, ...descriptors: readonly string[]): readonly string[] {
  const asked = request('shop', descriptors);
  const decision = service.limiter.begin(asked, service.ruleset, service.now);
  let reason: readonly string[] = [];
  service.apply(decision.operations, {
    settled: () => {
      decision.verdict();
      reason = decision.resolutions.map((resolution) => outcomeOf(resolution).reason);
    },
    failed: () => undefined,
  });
  return reason;
}

describe('a limit with block_for', () => {
  it.each([undefined, 'sliding_window', 'token_bucket'] as const)(
    'denies all calls of a caller from one over the limit on, and says for how long: algorithm %s',
    (algorithm) => {
      const service = serve([blocking({ algorithm })]);
      expect(overall(service, 'k=x', 'k=x')).toEqual(['OK', 'OK']);
      expect(played(service, 'k=x', 30_500, 'k=x', hits('k=x', 0))).toEqual(['OVER 120', 'OVER 90', 'OVER 90']);
      expect(overall(service, 'k=y', hits('k=x', -5))).toEqual(['OK', 'OK']);
      service.now += 89_499;
      expect(overall(service, 'k=x')).toEqual(['OVER']);
      service.now += 1;
      expect(overall(service, 'k=x', 'k=x', 'k=x')).toEqual(['OK', 'OK', 'OVER']);
    },
  );

  it('has the reset of its window while it allows', () => {
    const service = serve([blocking()]);
    expect(played(service, 'k=x', 10_000, 'k=x')).toEqual(['OK 50', 'OK 40']);
  });

  it('counts blocks in a statistic of their own, and gives them as a reason', () => {
    const service = serve([blocking()]);
    const all = [1, 2, 3, 4].map(() => reasons(service, 'k=x')[0]);
    expect(all).toEqual(['within_limit', 'within_limit', 'over_limit', 'blocked']);
    const moved = service.moved();
    expect(moved).toMatchObject({ 'shop.k.total_hits': 4, 'shop.k.over_limit': 2, 'shop.k.blocks': 1 });
  });

  it('is known by the local cache across windows, never for longer than it lasts', () => {
    const service = serve([blocking()], { localCacheBytes: 10_000 });
    expect(played(service, 'k=x', 'k=x', 'k=x', 70_500, 'k=x', 48_500, 'k=x')).toEqual([
      ...['OK 50', 'OK 50', 'OVER 120', 'OVER 50', 'OVER 1'],
    ]);
    expect(service.moved()).toMatchObject({ 'shop.k.over_limit_with_local_cache': 2 });
    service.now += 1000;
    expect(shown(call(service, 'k=x'))).toBe('OK 1');
  });

  it('has its rest as the reset also where the local cache asks again before its end', () => {
    const service = serve([blocking()], { localCacheBytes: 10_000, localCacheMaxAge: 30 });
    expect(played(service, 'k=x', 'k=x', 'k=x', 5_000, 'k=x', 40_000, 'k=x', 1_000, 'k=x')).toEqual([
      ...['OK 50', 'OK 50', 'OVER 120', 'OVER 115', 'OVER 75', 'OVER 74'],
    ]);
    expect(service.moved()).toMatchObject({ 'shop.k.over_limit_with_local_cache': 2 });
  });

  it('keeps its state in shadow mode, and is then enforced at once', () => {
    const service = serve([blocking({}, { shadowMode: true })]);
    expect(overall(service, 'k=x', 'k=x', 'k=x', 'k=x')).toEqual(['OK', 'OK', 'OK', 'OK']);
    service.ruleset = serve([blocking()]).ruleset;
    expect(overall(service, 'k=x')).toEqual(['OVER']);
  });

  it('lists a blocked caller among the offenders', () => {
    const offenders = new HeavyHitters({ capacity: 10, windowSeconds: 600 });
    const service = serve([blocking()], { offenders });
    for (let made = 0; made < 6; made += 1) call(service, 'k=x');
    service.now += MINUTE;
    call(service, 'k=x');
    expect(offenders.top({ limit: 9 }, Math.floor(service.now / 1000))).toMatchObject([
      { descriptor: 'k=x', limited: 5 },
    ]);
  });

  it('blocks by each of several limits, and shows the longest reset', () => {
    const hour: BlockConfig = { first: 3600, factor: 1, most: 3600, forgottenAfter: 0 };
    const limits = [perMinute(2, { blockFor: TWO_MINUTES }), limit(4, 'HOUR', { blockFor: hour })];
    for (const allOrNothing of [false, true]) {
      const service = serve([{ key: 'k', rateLimits: limits, allOrNothing }]);
      expect(played(service, 'k=x', 'k=x', 'k=x').slice(2)).toEqual(['OVER 120']);
      service.now += 2 * MINUTE;
      const rest = allOrNothing ? ['OK', 'OK', 'OVER'] : ['OK', 'OVER', 'OVER'];
      expect(overall(service, 'k=x', 'k=x', 'k=x')).toEqual(rest);
      expect(played(service, 'k=x')[0]).toBe('OVER 3600');
    }
  });

  it('is not asked by a limit of the request', () => {
    const service = serve([blocking()]);
    const own = descriptor('k=x', { limit: { requestsPerUnit: 9, unit: unitByName('MINUTE') } });
    expect(overall(service, 'k=x', 'k=x', 'k=x', own)).toEqual(['OK', 'OK', 'OVER', 'OK']);
  });
});

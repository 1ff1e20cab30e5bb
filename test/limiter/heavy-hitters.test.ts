import { type ListedOffender, type OffenderSummary, mergeOffenders, shownOffender } from '../../src/limiter/offender';
import { HeavyHitters } from '../../src/limiter/heavy-hitters';
import type { LimiterOptions } from '../../src/limiter/options';
import type { Descriptor } from '../../src/limiter/request';
import { Code } from '../../src/limiter/verdict';
import { unitByName } from '../../src/rules/unit';
import fc from '../support/data/properties';
import { descriptor } from '../support/data/requests';
import { listedOffender } from '../support/data/offenders';
import { type RuleSketch, limit } from '../support/data/rules';
import { call, hits, perMinute, serve } from './serve';

const START = 1_699_920_000_000;
const PERIOD = 600;
const BANNED: RuleSketch = { key: 'user', rateLimit: limit(0, 'SECOND') };

function watch(rules: readonly RuleSketch[] = [BANNED], options: Partial<LimiterOptions> = {}, capacity = 10) {
  const offenders = new HeavyHitters({ capacity, windowSeconds: PERIOD });
  const service = serve(rules, { ...options, offenders }, START);
  function top(more: { domain?: string; limit?: number } = {}) {
    return offenders.top({ limit: 100, ...more }, Math.floor(service.now / 1000));
  }
  return {
    service,
    top,
    call: (...of: readonly (string | Descriptor)[]) => call(service, ...of),
    /** The offenders and their calls in short: `user=anna 3`. */
    counts: () => top().map(({ descriptor: text, limited }) => `${text} ${limited}`),
    summary: () => offenders.summary(Math.floor(service.now / 1000)),
  };
}

describe('the offenders', () => {
  it('are the descriptors of calls over a limit, with their rule, in any window of the limit, not those within it', () => {
    const free = { key: 'plan', value: 'free', rateLimit: limit(1, 'SECOND') };
    const { service, call: decide, top } = watch([{ key: 'user', descriptors: [free] }]);
    for (let second = 0; second < 3; second += 1) {
      for (let made = 0; made < 3; made += 1) decide('user=anna,plan=free');
      decide('user=ben,plan=free');
      service.now += 1000;
    }
    decide('user=ben,plan=free', 'user=ben,plan=free', 'other=x', hits('user=ben,plan=free', -5));
    const rule = { domain: 'shop', rule: 'shop.user.plan_free', isShadow: false, error: 0 };
    expect(top()).toMatchObject([
      { ...rule, descriptor: 'user=anna,plan=free', limited: 6 },
      { ...rule, descriptor: 'user=ben,plan=free', limited: 1 },
    ]);
  });

  it('include calls that the local cache answers, those that shadow mode lets pass, and limits of requests', () => {
    const shadow = { key: 'path', rateLimit: perMinute(0), shadowMode: true };
    const { call: decide, top } = watch([{ key: 'user', rateLimit: perMinute(1) }, shadow], {
      localCacheBytes: 10_000,
    });
    for (let made = 0; made < 4; made += 1) decide('user=anna');
    expect(decide('path=/a', 'path=/a').overallCode).toBe(Code.OK);
    decide(descriptor('plan=x', { limit: { requestsPerUnit: 0, unit: unitByName('HOUR') } }));
    expect(top()).toMatchObject([
      { rule: 'shop.user', descriptor: 'user=anna', limited: 3, isShadow: false },
      { rule: 'shop.path', descriptor: 'path=/a', limited: 2, isShadow: true },
      { rule: '', descriptor: 'plan=x', limited: 1, isShadow: false },
    ]);
  });

  it('are one for all values that share a threshold, with the same texts under a prefix of the cache keys', () => {
    const shared = { key: 'path', value: '/a/*', shareThreshold: true, rateLimit: perMinute(0) };
    const { call: decide, counts } = watch([shared, BANNED], { cacheKeyPrefix: 'weir_' });
    decide('path=/a/1', 'path=/a/22', 'user=a_b');
    expect(counts()).toEqual(['path=/a/* 2', 'user=a_b 1']);
    const long = watch([BANNED], { cacheKeyPrefix: 'p'.repeat(300) });
    long.call('user=anna');
    expect(long.counts()).toEqual(['user=anna 1']);
  });

  it('are two where two rules have the same cache key', () => {
    const rules = ['a_b', 'a'].map((key) => ({ ...BANNED, key }));
    const { call: decide, top } = watch(rules);
    for (let made = 0; made < 2; made += 1) decide('a_b=c\n', 'a=b_c\n');
    decide('a=b_c\n');
    expect(top()).toMatchObject([
      { rule: 'shop.a', descriptor: 'a=b_c\n', limited: 3 },
      { rule: 'shop.a_b', descriptor: 'a_b=c\n', limited: 2 },
    ]);
  });

  it('are those of a domain where one is given, up to a number', () => {
    const { call: decide, top } = watch();
    decide('user=a', 'user=b', 'user=b');
    expect([top({ limit: 1 }).map(({ descriptor: text }) => text), top({ domain: 'other' })]).toEqual([['user=b'], []]);
  });

  it('keep the beginning of long texts, and tell texts with the same beginning apart', () => {
    const { call: decide, counts } = watch();
    const long = 'x'.repeat(50_000);
    decide(`user=${long}1`, `user=${long}2`, `user=${long}2`);
    const kept = `user=${'x'.repeat(251)}…`;
    expect(counts()).toEqual([`${kept} 2`, `${kept} 1`]);
  });

  it('disappear after one to two periods', () => {
    const { service, call: decide, counts } = watch();
    decide('user=anna');
    service.now += (PERIOD - 1) * 1000;
    decide('user=ben');
    service.now += 1000;
    expect(counts()).toEqual(['user=anna 1', 'user=ben 1']);
    decide('user=ben');
    expect(counts()).toEqual(['user=ben 2', 'user=anna 1']);
    service.now += PERIOD * 1000;
    expect(counts()).toEqual(['user=ben 1']);
    service.now += PERIOD * 1000;
    expect(counts()).toEqual([]);
  });

  it('are counted again from zero after a jump of the clock, but not when a store answers late', () => {
    const { service, call: decide, counts, summary } = watch();
    decide('user=anna');
    service.now -= 5000;
    decide('user=anna');
    expect([counts(), summary().since]).toEqual([['user=anna 2'], START / 1000]);
    service.now += 86_400_000;
    expect(counts()).toEqual([]);
    decide('user=anna');
    service.now -= 86_400_000;
    expect(counts()).toEqual([]);
    decide('user=ben');
    expect([counts(), summary().since]).toEqual([['user=ben 1'], START / 1000 - 5]);
  });

  it('have the bounds of one count, of each period and of both, for every caller: none counts too low', () => {
    const keys = fc.oneof(
      { weight: 3, arbitrary: fc.nat(3) },
      { weight: 2, arbitrary: fc.integer({ min: 4, max: 60 }) },
    );
    const stream = fc.array(keys, { maxLength: 120 });
    fc.assert(
      fc.property(stream, stream, fc.integer({ min: 1, max: 20 }), (first, second, capacity) => {
        const { service, call: decide, summary } = watch([BANNED], {}, capacity);
        decide('user=0');
        for (const key of first) decide(`user=${key}`);
        expectBounds(summary(), [0, ...first], capacity, 1);
        service.now += PERIOD * 1000;
        for (const key of second) decide(`user=${key}`);
        expectBounds(summary(), [0, ...first, ...second], capacity, 2);
      }),
    );
  });
});

describe('of an offender is told', () => {
  /** The offenders as operators see them. */
  function shown({ summary, service }: ReturnType<typeof watch>) {
    const now = service.now / 1000;
    return summary().offenders.map((each) => shownOffender(each, now));
  }
  /** In ISO 8601. @param seconds after the start */
  function at(seconds: number): string {
    return new Date(START + seconds * 1000).toISOString();
  }

  it('that it passes as soon as its limit lets it, of a limit per second after a second', () => {
    const rules = [
      { key: 'fast', rateLimit: limit(1, 'SECOND') },
      { key: 'slow', rateLimit: perMinute(1) },
      { key: 'even', rateLimit: perMinute(1, { algorithm: 'sliding_window' }) },
    ];
    const watched = watch(rules, { localCacheBytes: 10_000 });
    watched.service.now += 20_000;
    for (const text of ['fast=a', 'slow=a', 'even=a']) watched.call(text);
    for (const text of ['fast=a', 'slow=a', 'even=a', 'slow=a']) watched.call(text);
    const one = { recent: 1, since: at(20), todo: null };
    expect(shown(watched)).toMatchObject([
      { ...one, descriptor: 'slow=a', recent: 2, state: 'limited', until: at(60) },
      { ...one, descriptor: 'even=a', state: 'limited', until: at(120) },
      { ...one, descriptor: 'fast=a', state: 'limited', until: at(21) },
    ]);
    watched.service.now += 1_000;
    expect(shown(watched).map(({ state, until }) => [state, until])).toEqual([
      ['limited', at(60)],
      ['limited', at(120)],
      ['passes', null],
    ]);
    watched.service.now += 39_000;
    expect(shown(watched).map(({ state }) => state)).toEqual(['passes', 'limited', 'passes']);
  });

  it('that clearing does not unblock it if its limit is 0, and what does', () => {
    const watched = watch([BANNED, { key: 'path', rateLimit: perMinute(0), shadowMode: true }]);
    watched.call('user=a', 'user=a', 'path=a');
    watched.call(descriptor('plan=x', { limit: { requestsPerUnit: 0, unit: unitByName('HOUR') } }));
    watched.service.now += 86_400_000;
    watched.call('user=a');
    watched.service.now -= 1_000;
    watched.call('user=a', 'user=a', 'path=a');
    watched.call(descriptor('plan=x', { limit: { requestsPerUnit: 0, unit: unitByName('HOUR') } }));
    const zero = 'the limit is 0, so that clearing its counter unblocks nobody: ';
    expect(shown(watched)).toMatchObject([
      { state: 'never', until: null, todo: { text: `${zero}raise it, or add a rule for this caller alone` } },
      { rule: '', state: 'never', todo: { text: `${zero}change it where the calls get it` } },
      { rule: 'shop.path', state: 'passes', until: null, todo: null },
    ]);
  });

  it('how often it was limited in the last ten minutes, and since when without a pause of that length', () => {
    const watched = watch([BANNED], {}, 2);
    function told() {
      return shown(watched).map(({ descriptor: text, limited, recent, since }) => [text, limited, recent, since]);
    }
    for (let minute = 0; minute < 15; minute += 1) {
      watched.call('user=a');
      watched.service.now += 60_000;
    }
    expect(told()).toEqual([['user=a', 15, 9, at(0)]]);
    watched.service.now += 540_000;
    expect(told()).toEqual([['user=a', 5, 0, null]]);
    watched.call('user=a');
    expect(told()).toEqual([['user=a', 6, 1, at(0)]]);
    watched.service.now += 601_000;
    watched.call('user=a', 'user=a');
    expect(told()).toEqual([['user=a', 3, 2, at(24 * 60 + 601)]]);
    // The slot of another caller has nothing of it.
    watched.call('user=b', 'user=c');
    expect(told()).toEqual(expect.arrayContaining([['user=c', 2, 1, at(24 * 60 + 601)]]));
  });

  it('its share of the calls of its rule, of all processes that list one of its callers', () => {
    const summaries = [
      [listedOffender({ descriptor: 'a', recent: 30, calls: 60 }), listedOffender({ descriptor: 'b', calls: 60 })],
      [listedOffender({ descriptor: 'b', recent: 1, calls: 40 })],
      [listedOffender({ descriptor: 'c', rule: 'shop.path', recent: 2, calls: 1 })],
      [listedOffender({ descriptor: 'd', rule: 'old', recent: 2 }), listedOffender({ descriptor: 'e', rule: 'none' })],
      [3, 1].map((recent) =>
        listedOffender({ descriptor: recent === 3 ? 'f' : 'g', rule: 'shop.all', recent, calls: 3 }),
      ),
    ].map((offenders) => ({ since: 0, floor: 0, offenders }));
    const { offenders } = mergeOffenders(summaries, 10);
    const shares = offenders.map((each) => [each.descriptor, shownOffender(each, 0).share]);
    expect(Object.fromEntries(shares)).toEqual({ a: 0.3, b: 0.01, c: null, d: null, e: null, f: 1, g: 0.333 });
  });
});

/** @param sketches of how many the summary is */
function expectBounds(summary: OffenderSummary, calls: readonly number[], capacity: number, sketches: number): void {
  const exact = new Map<string, number>();
  for (const key of calls) exact.set(`user=${key}`, (exact.get(`user=${key}`) ?? 0) + 1);
  const { offenders, floor } = summary;
  expect(offenders).toHaveLength(Math.min(capacity, exact.size));
  if (sketches === 1) expect(offenders.reduce((sum, { limited }) => sum + limited, 0)).toBe(calls.length);
  expect(floor).toBeLessThanOrEqual((calls.length / capacity) * sketches);
  expect(offenders).toEqual(offenders.toSorted((one, other) => other.limited - one.limited));
  for (const { descriptor: text, limited, error } of offenders) {
    const truth = exact.get(text) ?? 0;
    expect([limited >= truth, limited - error <= truth, error <= floor]).toEqual([true, true, true]);
    exact.delete(text);
  }
  // Every key that is not listed occurred at most `floor` times.
  for (const truth of exact.values()) expect(truth).toBeLessThanOrEqual(floor);
}

describe('the offenders under load', () => {
  it('are counted exactly up to 1,000 calls of each second, also when a store answers late or the clock goes back', () => {
    const { service, call: decide, counts } = watch();
    function counted(calls: number) {
      const before = Number(counts()[0]?.split(' ')[1] ?? 0);
      for (let made = 0; made < calls; made += 1) decide('user=anna');
      return Number(counts()[0]?.split(' ')[1] ?? 0) - before;
    }
    expect(counted(1000)).toBe(1000);
    // Each of 16 is counted as 16, after the first of them.
    expect(counted(1) + counted(100)).not.toBe(101);
    service.now -= 59_000;
    expect(counted(1)).not.toBe(1);
    service.now -= 1_000;
    expect(counted(1000)).toBe(1000);
    service.now += 60_000;
    expect(counted(1000)).toBe(1000);
  });

  it('have counts that stand for all calls, of callers that take turns, too', () => {
    const { call: decide, top } = watch([BANNED], {}, 16);
    for (let made = 0; made < 6_000; made += 1) decide(...Array.from({ length: 16 }, (_, turn) => `user=${turn}`));
    const limited = top().map(({ limited: count }) => count);
    expect(limited).toHaveLength(16);
    for (const count of limited) expect(Math.abs(count / 6_000 - 1)).toBeLessThan(0.2);
    expect(Math.abs(limited.reduce((sum, count) => sum + count) / 96_000 - 1)).toBeLessThan(0.02);
  });
});

it('merged summaries of offenders assume the floor of one that does not list an offender, and leave out what is rare', () => {
  function listed(key: string, limited: number, error = 0): ListedOffender {
    return listedOffender({ key, descriptor: `user=${key}`, limited, error });
  }
  const full = { since: 900, floor: 3, offenders: [listed('anna', 9), listed('ben', 3, 2)] };
  const other = { since: 300, floor: 0, offenders: [listed('anna', 5, 1), listed('eva', 1)] };
  const all = [listed('anna', 14, 1), listed('eva', 4, 3), listed('ben', 3, 2)];
  expect(mergeOffenders([full, other], 10)).toEqual({ since: 300, floor: 3, offenders: all });
  expect(mergeOffenders([other, full], 1)).toEqual({ since: 300, floor: 4, offenders: all.slice(0, 1) });
});

it('merged summaries of more callers than are sorted at once list the first ones of all, equal ones by their keys', () => {
  const offenders = Array.from({ length: 2_000 }, (_, index) => {
    const key = `user=${(index * 7_919) % 2_000}`;
    return listedOffender({ key, descriptor: key, limited: index % 3 });
  });
  const halves = [offenders.slice(0, 900), offenders.slice(900)].map((half) => ({
    since: 0,
    floor: 0,
    offenders: half,
  }));
  const most = offenders.filter(({ limited }) => limited === 2).map(({ key }) => key);
  expect(mergeOffenders(halves, 50).offenders.map(({ key }) => key)).toEqual(most.sort().slice(0, 50));
});

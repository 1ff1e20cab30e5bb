import { type Limit, type LimitOptions, limitOfOverride, limitOfRule } from '../../src/counting/limit';
import { NO_LIMIT, type RuleLimit } from '../../src/rules/rule-config';
import { matchRule } from '../../src/rules/ruleset';
import { UNITS } from '../../src/rules/unit';
import { entries } from '../support/data/requests';
import { type RuleSketch, limit, rulesetOf, unlimited } from '../support/data/rules';

/** 10 s into a Tuesday in UTC, in Unix seconds. */
const NOW = Date.UTC(2023, 10, 14, 0, 0, 10) / 1000;

/** The limits of a rule for the key `k`. */
function limitsOf(sketch: Partial<RuleSketch>, options: Partial<LimitOptions> = {}): readonly (Limit | undefined)[] {
  const rule = matchRule(rulesetOf('shop', { key: 'k', ...sketch }).domains.get('shop')!, entries('k=x'))!;
  return rule.limits.map((each) => limitOfRule(rule, each, { nearLimitRatio: 0.8, ...options }));
}

function limitOf(of: RuleLimit, sketch: Partial<RuleSketch> = {}, options: Partial<LimitOptions> = {}): Limit {
  return limitsOf({ ...sketch, rateLimit: of }, options)[0]!;
}

describe('a limit', () => {
  it.each<[of: Parameters<typeof limit>, start: string, end: string]>([
    [[1, 'SECOND'], '2023-11-14T00:00:10', '2023-11-14T00:00:11'],
    [[1, 'HOUR'], '2023-11-14T00:00:00', '2023-11-14T01:00:00'],
    [[1, 'MINUTE', { unitMultiplier: 7 }], '2023-11-13T23:56:00', '2023-11-14T00:03:00'],
    // From the Unix epoch, a Thursday, on.
    [[1, 'WEEK'], '2023-11-09T00:00:00', '2023-11-16T00:00:00'],
    [[1, 'DAY', { calendar: { timeZone: 'Asia/Tokyo', startsOn: 1 } }], '2023-11-13T15:00:00', '2023-11-14T15:00:00'],
    [[1, 'MONTH', { calendar: { timeZone: 'UTC', startsOn: 31 } }], '2023-10-31T00:00:00', '2023-11-30T00:00:00'],
  ])('of %j has the window from %s to %s', (of, start, end) => {
    const made = limitOf(limit(...of));
    const window = [made.startOfWindow(NOW), made.endOfWindow(NOW)];
    expect(window.map((time) => new Date(time * 1000).toISOString().slice(0, 19))).toEqual([start, end]);
    const isOfCalendar = of[2]?.calendar !== undefined;
    expect([made.endsAt, made.isFixedWindow]).toEqual([isOfCalendar ? window[1] : undefined, true]);
    if (!isOfCalendar) expect(made.lengthSeconds).toBe(window[1]! - window[0]!);
  });

  it.each([
    // In double precision, 0.7 of 90 would be 62.
    [90, 0.7, 63],
    [1, 0.8, 0],
    [7, 1, 7],
    // Single precision rounds these up, above the limit.
    [4_294_967_295, 1, 4_294_967_295],
  ])('of %i is near from %f of it on, above %i hits, as in the Go service', (requests, nearLimitRatio, near) => {
    expect(limitOf(limit(requests, 'MINUTE'), {}, { nearLimitRatio }).nearThreshold).toBe(near);
  });

  it('with an algorithm has its burst as the most hits, and shows it where it is another number', () => {
    const bucket = limit(100, 'MINUTE', { algorithm: 'token_bucket', burst: 10 });
    const [own, plain] = [bucket, { ...bucket, burst: 100 }].map((of) => limitOf(of));
    expect(own).toMatchObject({ requestsPerUnit: 100, capacity: 10, nearThreshold: 8, isFixedWindow: false });
    expect([own!.algorithmName, own!.burst]).toEqual(['token_bucket', 10]);
    expect(plain!.burst).toBeUndefined();
  });

  it('allows more than another by its rate or its burst', () => {
    const rising = [
      limit(5, 'MINUTE', { algorithm: 'token_bucket', burst: 5 }),
      limit(5, 'MINUTE', { algorithm: 'token_bucket', burst: 6 }),
      limit(7, 'MINUTE', { algorithm: 'token_bucket', burst: 6 }),
    ];
    const allowances = rising.map((of) => limitOf(of).allowance);
    expect(allowances).toEqual(allowances.toSorted((one, other) => one - other));
    expect(new Set(allowances).size).toBe(3);
    expect([3, 9].map((requests) => limitOf(limit(requests, 'MINUTE')).allowance)).toEqual([3, 9]);
  });

  it('of a rule with all_or_nothing is decided by an algorithm, also in a fixed window, which the answer does not show', () => {
    const rateLimits = [limit(1, 'MINUTE'), limit(2, 'HOUR', { algorithm: 'sliding_window' })];
    const [fixed, sliding] = limitsOf({ rateLimits, allOrNothing: true }) as [Limit, Limit];
    expect([fixed, sliding].map(({ algorithm }) => algorithm?.name)).toEqual(['fixed_window', 'sliding_window']);
    expect(fixed).toMatchObject({ isFixedWindow: true, isOneOfSeveral: true, algorithmName: undefined });
    expect(sliding).toMatchObject({ isFixedWindow: false, isOneOfSeveral: true });
    expect(limitOf(limit(1, 'MINUTE'))).toMatchObject({ algorithm: undefined, isOneOfSeveral: false });
  });

  it('is none where a rule has none, is unlimited, or denies', () => {
    const none = [unlimited(), unlimited({ unlimited: false })].map((rateLimit) => limitsOf({ rateLimit }));
    expect([...none, limitsOf({})]).toEqual([[undefined], [undefined], []]);
  });

  it('has the name of its rule, or with LIMIT_NAME_FROM_RULE its path', () => {
    const of = limit(1, 'MINUTE');
    function nameOf(named: RuleLimit, limitNameFromRule: boolean): string {
      return limitOf(named, { value: 'x' }, { limitNameFromRule }).name;
    }
    const names = [nameOf(of, true), nameOf(of, false), nameOf({ ...of, name: 'own' }, true)];
    expect(names).toEqual(['shop.k_x', '', 'own']);
    const several = limitsOf({ rateLimits: [of, limit(9, 'HOUR')] }, { limitNameFromRule: true });
    expect(several.map((each) => each!.name)).toEqual(['shop.k.minute', 'shop.k.hour']);
  });

  it('is in shadow mode with its rule, and for those for whom that is not enforced', () => {
    const of = limit(1, 'MINUTE');
    const made = [limitOf(of), limitOf(of, { shadowMode: true }), limitOf(of, {}, { isInShadow: true })];
    expect(made.map(({ shadowMode }) => shadowMode)).toEqual([false, true, true]);
  });

  it('has the policy of its rule or of the settings when the store fails, and no local one with an algorithm', () => {
    const [plain, bucket] = [limit(1, 'MINUTE'), limit(1, 'MINUTE', { algorithm: 'token_bucket' })];
    const policies = [
      limitOf(plain),
      limitOf(plain, {}, { onStoreFailure: 'allow' }),
      limitOf(plain, { onStoreFailure: 'local' }, { onStoreFailure: 'allow' }),
      limitOf(bucket, { onStoreFailure: 'local' }, { onStoreFailure: 'allow' }),
      limitOf(bucket, { onStoreFailure: 'deny' }),
    ].map(({ onStoreFailure }) => onStoreFailure);
    expect(policies).toEqual(['error', 'allow', 'local', 'error', 'deny']);
  });

  it.each([
    ['auto', [true, true, false]],
    ['rules', [false, true, false]],
    ['off', [false, false, false]],
    [undefined, [false, false, false]],
  ] as const)('with LEASES=%s may be leased as its `lease` says, and never with all_or_nothing', (leases, expected) => {
    const rateLimits = [undefined, true, false].map((lease) => limit(1, 'MINUTE', { lease }));
    expect(rateLimits.map((each) => limitOf(each, {}, { leases }).lease)).toEqual(expected);
    const together = limitsOf({ rateLimits, allOrNothing: true }, { leases });
    expect(together.map((each) => each!.lease)).toEqual([false, false, false]);
  });

  it('is tried with another number of requests', () => {
    const tried = { limitTried: 7 };
    expect(limitOf(limit(1, 'MINUTE'), {}, tried)).toMatchObject({ requestsPerUnit: 7 });
    const [own, settings] = [
      { requestsPerUnit: 1, unit: UNITS.HOUR },
      { nearLimitRatio: 0.8, ...tried },
    ];
    expect(limitOfOverride(own, NO_LIMIT, settings).requestsPerUnit).toBe(7);
  });
});

it('a limit override has nothing of the rule but its algorithm, and whether it is postpaid', () => {
  const sent = { requestsPerUnit: 10, unit: UNITS.HOUR };
  const settings = { nearLimitRatio: 0.8, limitNameFromRule: true, leases: 'auto', onStoreFailure: 'local' } as const;
  const plain = limitOfOverride(sent, NO_LIMIT, settings);
  const none = { path: '', name: '', shadowMode: false, lease: false, algorithm: undefined, calendar: undefined };
  expect(plain).toMatchObject({ ...sent, ...none, unitMultiplier: 1, onStoreFailure: 'local' });
  const rule = limit(1, 'MINUTE', { algorithm: 'token_bucket', burst: 30, name: 'rule' });
  const decided = limitOfOverride(sent, rule, settings);
  expect(decided).toMatchObject({ lengthSeconds: 3600, capacity: 30, onStoreFailure: 'error' });
  expect(decided).toMatchObject({ ...sent, unitMultiplier: 1, name: '', algorithmName: 'token_bucket', burst: 30 });
  const postpaid = [false, true].map((each) => limitOfOverride(sent, { ...rule, postpaid: each }, settings).postpaid);
  expect(postpaid).toEqual([false, true]);
});

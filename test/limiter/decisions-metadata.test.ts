import type { LimiterOptions } from '../../src/limiter/options';
import { unitByName } from '../../src/rules/unit';
import { descriptor, request } from '../support/data/requests';
import { type RuleSketch, limit, rulesetOf, unlimited } from '../support/data/rules';
import { TestService } from '../support/data/service';

// 10 s into a minute.
const NOW = 1_699_920_010_000;
const RULES: readonly RuleSketch[] = [
  { key: 'user', value: 'anna', rateLimit: limit(2, 'MINUTE', { name: 'of anna' }) },
  { key: 'shadow', shadowMode: true, rateLimit: limit(0, 'MINUTE') },
  { key: 'free', rateLimit: unlimited({ replaces: ['replaced'] }) },
  { key: 'old', rateLimit: limit(1, 'MINUTE', { name: 'replaced' }) },
  { key: 'parent', descriptors: [{ key: 'child', value: 'a*', rateLimit: limit(5, 'HOUR') }] },
];

const services: TestService[] = [];
afterEach(() => Promise.all(services.splice(0).map((service) => service.close())));

function serve(options: Partial<LimiterOptions> = {}): TestService {
  const all = { dynamicMetadata: true, metadataDecisions: true, ...options };
  const service = new TestService(rulesetOf('shop', ...RULES), all, NOW);
  services.push(service);
  return service;
}

function decisionsOf(service: TestService, ...of: Parameters<typeof request>) {
  return service.decide(request(...of)).dynamicMetadata?.['decisions'];
}

describe('the decisions in the dynamic metadata', () => {
  it('have rule, limit, count, code and reset of each descriptor, in the order of the request', () => {
    const service = serve();
    expect(decisionsOf(service, 'shop', ['user=anna', 'parent=p,child=abc'], 2)).toEqual([
      {
        code: 'OK',
        reason: 'within_limit',
        rule: 'shop.user_anna',
        currentLimit: { requestsPerUnit: 2, unit: 'MINUTE', name: 'of anna' },
        count: 2,
        durationUntilReset: '50s',
      },
      {
        code: 'OK',
        reason: 'within_limit',
        rule: 'shop.parent.child_a*',
        currentLimit: { requestsPerUnit: 5, unit: 'HOUR' },
        count: 2,
        durationUntilReset: '3590s',
      },
    ]);
    expect(decisionsOf(service, 'shop', ['user=anna'])).toMatchObject([
      { code: 'OVER_LIMIT', reason: 'over_limit', count: 3 },
    ]);
  });

  it('say that a rule over its limit is in shadow mode', () => {
    expect(decisionsOf(serve(), 'shop', ['shadow=x'])).toMatchObject([
      { code: 'OK', reason: 'over_limit', rule: 'shop.shadow', count: 1, shadowMode: true },
    ]);
  });

  it('say why no limit applies', () => {
    const service = serve();
    expect(decisionsOf(service, 'shop', ['free=x', 'old=x', 'parent=x', 'user=ben'])).toEqual([
      { code: 'OK', reason: 'unlimited', rule: 'shop.free' },
      { code: 'OK', reason: 'replaced', rule: 'shop.old' },
      { code: 'OK', reason: 'no_limit', rule: 'shop.parent' },
      { code: 'OK', reason: 'no_match' },
    ]);
    expect(decisionsOf(service, 'other', ['user=anna'])).toEqual([{ code: 'OK', reason: 'unknown_domain' }]);
  });

  it('have no rule for a limit that was sent with the request', () => {
    const override = descriptor('user=anna', { limit: { requestsPerUnit: 7, unit: unitByName('DAY') } });
    const [decision] = decisionsOf(serve(), 'shop', [override]) as readonly object[];
    expect(decision).toMatchObject({
      reason: 'within_limit',
      currentLimit: { requestsPerUnit: 7, unit: 'DAY' },
      count: 1,
    });
    expect(decision).not.toHaveProperty('rule');
  });

  it('have no count when the local cache answers', () => {
    const service = serve({ localCacheBytes: 10_000 });
    decisionsOf(service, 'shop', ['user=anna'], 3);
    const [decision] = decisionsOf(service, 'shop', ['user=anna']) as readonly object[];
    expect(decision).toMatchObject({ code: 'OVER_LIMIT', reason: 'over_limit_in_local_cache' });
    expect(decision).not.toHaveProperty('count');
  });

  it('say that negative hits were subtracted', () => {
    const service = serve();
    decisionsOf(service, 'shop', ['user=anna'], 3);
    const negative = descriptor('user=anna', { hitsAddend: 1, isNegativeHits: true });
    expect(decisionsOf(service, 'shop', [negative])).toMatchObject([{ code: 'OK', reason: 'negative_hits', count: 2 }]);
  });

  it('are the only difference to the metadata of the Go service', () => {
    const { decisions: _, ...others } = serve().decide(request('shop', ['user=anna'], 2)).dynamicMetadata!;
    expect(others).toEqual(
      serve({ metadataDecisions: false }).decide(request('shop', ['user=anna'], 2)).dynamicMetadata,
    );
    expect(others).toEqual({ domain: 'shop', descriptors: [{ entries: ['user=anna'] }], hitsAddend: 2 });
  });
});

describe('the name of a limit', () => {
  it('is the path of its rule with LIMIT_NAME_FROM_RULE, if the rule has no name', () => {
    const service = serve({ limitNameFromRule: true });
    const { statuses } = service.decide(request('shop', ['parent=p,child=abc', 'user=anna', 'free=x']));
    expect(statuses.map(({ currentLimit }) => currentLimit?.name)).toEqual([
      'shop.parent.child_a*',
      'of anna',
      undefined,
    ]);
  });

  it('is empty without it', () => {
    const { statuses } = serve().decide(request('shop', ['parent=p,child=abc']));
    expect(statuses[0]?.currentLimit?.name).toBe('');
  });

  it('from a rule does not make it replaceable', () => {
    const rules = rulesetOf(
      'shop',
      { key: 'a', rateLimit: limit(1, 'MINUTE') },
      { key: 'b', rateLimit: limit(1, 'MINUTE', { replaces: ['shop.a'] }) },
    );
    const service = new TestService(rules, { limitNameFromRule: true }, NOW);
    services.push(service);
    const { statuses } = service.decide(request('shop', ['a=1', 'b=1']));
    expect(statuses.map(({ currentLimit }) => currentLimit?.name)).toEqual(['shop.a', 'shop.b']);
  });
});

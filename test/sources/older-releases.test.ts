import { DiscoveryResponse } from '../../src/gen/envoy/service/discovery/v3/discovery';
import {
  RateLimitConfig,
  type RateLimitDescriptor,
  type RateLimitPolicy,
} from '../../src/gen/ratelimit/config/ratelimit/v3/rls_conf';
import { Code } from '../../src/limiter/verdict';
import { buildRuleset } from '../../src/rules/ruleset';
import { RULES_TYPE_URL, checkResources } from '../../src/sources/xds/check-resources';
import { MemoryCounters } from '../../src/sinks/counters/memory/memory-counters';
import { Service } from '../integration/counters/rule-scenarios';
import { resourceOf, ruleResource } from '../support/data/rule-resources';
import { type RuleSketch, atATime, domainConfig, limit } from '../support/data/rules';

// Rules over xDS, as an instance gets them and as one of a release gets them that skips the fields 1005 to 1008.

/** A Monday, 12:00 UTC. */
const NOON = Date.UTC(2026, 10, 30, 12);

function withoutFields(descriptor: RateLimitDescriptor): RateLimitDescriptor {
  function older(policy: RateLimitPolicy): RateLimitPolicy {
    return { ...policy, maxConcurrent: undefined, active: undefined, blockFor: undefined };
  }
  const { rateLimit, rateLimits, descriptors } = descriptor;
  return {
    ...descriptor,
    addressPrefix: undefined,
    rateLimit: rateLimit && older(rateLimit),
    rateLimits: rateLimits.map(older),
    descriptors: descriptors.map(withoutFields),
  };
}

/** What the calls of each value, at seconds after noon, come to by the rule of the key `k`; or the first error. */
async function decided(rule: Omit<RuleSketch, 'key'>, calls: readonly (readonly [value: string, second: number])[]) {
  const resource = ruleResource('d', domainConfig('d', { key: 'k', ...rule }));
  const config = RateLimitConfig.decode(resource.value);
  const older = resourceOf({ ...config, descriptors: config.descriptors.map(withoutFields) });
  return Promise.all(
    [resource, older].map(async (each) => {
      const fields = { versionInfo: '1', canary: false, typeUrl: RULES_TYPE_URL, nonce: 'n', resources: [each] };
      const { configs, errors } = checkResources(DiscoveryResponse.encode(fields).finish(), false);
      if (errors.length > 0) return errors[0]!;
      const clock = { now: NOON };
      await using counters = Object.assign(new MemoryCounters({ maxKeys: 100, now: () => clock.now }), {
        [Symbol.asyncDispose]: () => counters.close(),
      });
      using service = new Service(buildRuleset(configs), counters, {}, () => clock.now);
      const answers: string[] = [];
      for (const [value, second] of calls) {
        clock.now = NOON + second * 1000;
        const { overallCode } = await service.decide('d', [`k=${value}`]);
        answers.push(overallCode === Code.OK ? 'OK' : 'OVER');
      }
      return answers.join(' ');
    }),
  );
}

describe('an older release', () => {
  it('counts each address of a network by itself', async () => {
    const rule = { addressPrefix: { ipv4: 32, ipv6: 64 }, rateLimit: limit(1, 'MINUTE') };
    const calls = ['2001:db8::1', '2001:db8::2', '198.51.100.7', '198.51.100.7'].map((value) => [value, 0] as const);
    expect(await decided(rule, calls)).toEqual(['OK OVER OK OVER', 'OK OK OK OVER']);
  });

  it('applies a limit at any hour, and rejects limits that alternate', async () => {
    const [day, night] = [
      { from: '06:00', to: '10:00' },
      { from: '10:00', to: '06:00' },
    ].map((hours) => limit(1, 'MINUTE', { active: { timeZone: 'UTC', ranges: [{ days: [], ...hours }] } }));
    const calls = [
      ['x', 0],
      ['x', 0],
    ] as const;
    expect(await decided({ rateLimit: day! }, calls)).toEqual(['OK OK', 'OK OVER']);
    expect(await decided({ rateLimits: [day!, night!] }, calls)).toEqual([
      'OK OVER',
      expect.stringContaining('has a window as long as minute'),
    ]);
  });

  it('denies only calls that are over the limit, and starts no block', async () => {
    const blockFor = { first: 600, factor: 1, most: 600, forgottenAfter: 0 };
    const calls = [
      ['x', 0],
      ['x', 0],
      ['x', 60],
    ] as const;
    const rule = { rateLimit: limit(1, 'MINUTE', { blockFor }) };
    expect(await decided(rule, calls)).toEqual(['OK OVER OVER', 'OK OVER OK']);
  });

  it('rejects the number of reservations at a time, so that its rules before stay active', async () => {
    const error = expect.stringContaining('unit');
    expect(await decided({ rateLimit: atATime(1) }, [['x', 0]])).toEqual(['OK', error]);
    expect(await decided({ rateLimits: [limit(9, 'MINUTE'), atATime(1)] }, [['x', 0]])).toEqual(['OK', error]);
  });
});

import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': `domain: shop
descriptors:
  - key: user
    descriptors:
      - { key: plan, value: free, rate_limit: { unit: day, requests_per_unit: 5 } }
`,
};

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

function start(env: Readonly<Record<string, string>> = {}) {
  return WeirProcess.start({ env: { ...rules.env, LOG_LEVEL: 'warning', DISABLE_STATS: 'true', ...env } });
}

/** Calls until there is a line: one call per second is examined. */
async function lineAfter(weir: WeirProcess, domain: string, descriptor: string): Promise<string> {
  using client = new RateLimitClient(weir.grpcAddress);
  const about = `descriptors="${descriptor}"`;
  return await weir.until(`a line about ${descriptor}`, async () => {
    await client.shouldRateLimit(domain, [descriptor]);
    return weir.output.split('\n').find((line) => line.includes(about));
  });
}

describe('a call to which no rule applies', () => {
  it('is warned of, with the nearest rule and what differs', async () => {
    await using weir = await start();
    const domain = await lineAfter(weir, 'Shop', 'user=anna,plan=free');
    expect(domain).toMatch(/level=warning msg="calls are not limited: no rule file has their domain" domain=Shop/);
    expect(domain).toMatch(/difference=.*'shop'/);
    const key = await lineAfter(weir, 'shop', 'User=anna,plan=free');
    expect(key).toMatch(/level=warning msg="calls are not limited: no rule matches their descriptors" domain=shop/);
    expect(key).toMatch(/nearest=shop\.user difference=.*'User'.*'user'/);
    expect(await lineAfter(weir, 'shop', 'user=anna')).toMatch(/nearest=shop\.user\.plan_free difference=/);
    expect(await lineAfter(weir, 'shop', 'user=anna,plan=free,a=b')).toMatch(
      /nearest=shop\.user\.plan_free difference=/,
    );
    const statistics = await weir.statistics();
    expect(statistics.get('ratelimit.service.unknown_domain')).toBeGreaterThan(0);
    expect(statistics.get('ratelimit.service.no_match')).toBeGreaterThan(2);
  });

  it('is only counted with UNMATCHED_WARNINGS=false', async () => {
    await using weir = await start({ UNMATCHED_WARNINGS: 'false' });
    using client = new RateLimitClient(weir.grpcAddress);
    await client.shouldRateLimit('shop', ['other=x']);
    expect((await weir.statistics()).get('ratelimit.service.no_match')).toBe(1);
    weir.signal('SIGTERM');
    await weir.exited;
    expect(weir.output).not.toContain('not limited');
  });
});

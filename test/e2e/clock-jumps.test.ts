import { join } from 'node:path';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const JUMPING_CLOCK = join(__dirname, '../support/processes/jumping-clock.cjs');
const RULES = {
  'shop.yaml': `
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: year, requests_per_unit: 1000}
  - key: path
    rate_limit: {unit: hour, requests_per_unit: 1}
`,
};

describe('a service whose system clock jumps ahead and back', () => {
  it('logs each jump once and counts on, in the windows of the current time', async () => {
    await using rules = await RuleFolder.with(RULES);
    await using weir = await WeirProcess.start({
      env: { ...rules.env, NODE_OPTIONS: `--require ${JUMPING_CLOCK}`, LOCAL_CACHE_SIZE_IN_BYTES: '100000' },
    });
    using client = new RateLimitClient(weir.grpcAddress);
    async function call(descriptor: string, hits = 1) {
      const { statuses } = await client.shouldRateLimit('shop', [descriptor], hits);
      return statuses[0];
    }
    async function jump(direction: 'ahead' | 'back') {
      weir.signal('SIGUSR2');
      await weir.line(new RegExp(`level=warning msg="the system clock jumped ${direction}; .*" by="?(?:7199|7200)\\.`));
    }

    expect(await call('user=regular', 900)).toMatchObject({ limitRemaining: 100 });
    await jump('ahead');
    expect(await call('path=/', 5)).toMatchObject({ code: 2 });
    expect(await call('path=/')).toMatchObject({ code: 2 });
    expect((await weir.statistics()).get('ratelimit.localcache.entryCount')).toBe(1);
    await jump('back');
    expect(await call('path=/')).toMatchObject({ code: 1 });
    expect((await weir.statistics()).get('ratelimit.localcache.entryCount')).toBe(0);
    expect(await call('user=regular')).toMatchObject({ limitRemaining: 99 });
    // The key that was created ahead is removed.
    await weir.until('two keys', async () => (await weir.statistics()).get('ratelimit.memory.keys') === 2);
    expect(weir.output.match(/the system clock jumped/g)).toHaveLength(2);
  });
});

import type { ServiceError } from '@grpc/grpc-js';
import { CONNECTION_LOST, RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};
const UNAVAILABLE = 14;

describe('the service on a termination signal', () => {
  it('answers every call that it has counted, and rejects the others as unavailable', async () => {
    await using rules = await RuleFolder.with(RULES);
    // With a window of 20 ms there are calls in flight at every moment.
    await using weir = await WeirProcess.start({ env: { ...rules.env, KVSTORE_PIPELINE_WINDOW: '20ms' } });
    const clients = Array.from({ length: 4 }, () => new RateLimitClient(weir.grpcAddress));
    const outcome = { answered: 0, highest: 0, failures: [] as unknown[] };
    let isRunning = true;

    const callers = clients.flatMap((client) =>
      Array.from({ length: 16 }, async () => {
        while (isRunning) {
          try {
            const { statuses } = await client.shouldRateLimit('shop', ['user=x']);
            outcome.answered += 1;
            outcome.highest = Math.max(outcome.highest, 1_000_000 - (statuses[0]?.limitRemaining ?? NaN));
          } catch (error) {
            isRunning = false;
            outcome.failures.push(error);
          }
        }
      }),
    );
    await weir.until('calls to be answered', () => outcome.answered > 100);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    await Promise.all(callers);
    for (const client of clients) client[Symbol.dispose]();

    // Every count was returned to a caller.
    expect(outcome.highest).toBe(outcome.answered);
    for (const failure of outcome.failures) expect(failure).toMatchObject({ code: UNAVAILABLE });
  });

  it('turns unhealthy, answers the calls in flight, and exits with 0', async () => {
    await using rules = await RuleFolder.with(RULES);
    await using weir = await WeirProcess.start({ env: { ...rules.env, KVSTORE_PIPELINE_WINDOW: '6s' } });
    using client = new RateLimitClient(weir.grpcAddress);
    const inFlight = client.shouldRateLimit('shop', ['user=x']);
    await weir.until('the call to be counted', async () =>
      (await weir.statistics()).has('ratelimit.service.rate_limit.shop.user.total_hits'),
    );
    weir.signal('SIGTERM');
    const health = await weir.until('the health to turn', async () => {
      const response = await weir.http('/healthcheck');
      return response.status === 500 && response.text();
    });
    expect(health).toContain('termination');
    expect(await weir.debugHealth()).toEqual([500, health]);
    expect((await inFlight).statuses[0]?.limitRemaining).toBe(999_999);
    expect(await weir.exited).toBe(0);
  });

  it.each(['1', '2'])(
    'answers the calls in flight while rules change all the time, with WORKERS=%s',
    async (WORKERS) => {
      await using rules = await RuleFolder.with(RULES);
      await using weir = await WeirProcess.start({
        env: { ...rules.env, KVSTORE_PIPELINE_WINDOW: '4s', WORKERS },
      });
      using client = new RateLimitClient(weir.grpcAddress);
      const inFlight = client.shouldRateLimit('shop', ['user=x']);
      await weir.until('the call to be counted', async () =>
        (await weir.statistics()).has('ratelimit.service.rate_limit.shop.user.total_hits'),
      );
      const exited = weir.exited;
      let changes = 0;
      let isRunning = true;
      const editing = (async () => {
        for (; isRunning; changes += 1) {
          await rules.write('shop.yaml', `${RULES['shop.yaml']}# version ${changes}\n`);
          if (changes === 5) weir.signal('SIGTERM');
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      })();
      await expect(inFlight).resolves.toMatchObject({ overallCode: 1 });
      expect(await exited).toBe(0);
      isRunning = false;
      await editing;
      expect(changes).toBeGreaterThan(5);
      expect(weir.output).not.toMatch(/level=(error|fatal)/);
    },
  );

  it('exits immediately with 1 on a second signal', async () => {
    await using rules = await RuleFolder.with(RULES);
    await using weir = await WeirProcess.start({ env: { ...rules.env, KVSTORE_PIPELINE_WINDOW: '60s' } });
    using client = new RateLimitClient(weir.grpcAddress);
    const lost = client.shouldRateLimit('shop', ['user=x']).catch((error: unknown) => error);
    await weir.until('the call to be counted', async () =>
      (await weir.statistics()).has('ratelimit.service.rate_limit.shop.user.total_hits'),
    );
    weir.signal('SIGTERM');
    await weir.until('the health to turn', async () => (await weir.http('/healthcheck')).status === 500);
    weir.signal('SIGINT');
    expect(await weir.exited).toBe(1);
    expect(CONNECTION_LOST).toContain(((await lost) as ServiceError).code);
    expect(weir.output).toContain('drain aborted by second signal');
  });

  it.each(['SIGINT', 'SIGHUP'] as const)('exits with 0 on %s', async (name) => {
    await using rules = await RuleFolder.with(RULES);
    await using weir = await WeirProcess.start({ env: rules.env });
    weir.signal(name);
    expect(await weir.exited).toBe(0);
  });
});

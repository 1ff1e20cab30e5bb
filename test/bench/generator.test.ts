import { Generator } from '../../bench/suite/load/generator';
import { STEP } from '../../bench/suite/load/interval';
import { LOADS, type Load, protocolOf } from '../../bench/suite/scenarios/loads';
import { messagesOf } from '../../bench/suite/scenarios/messages';
import { RULES, RULE_FILE } from '../../bench/suite/scenarios/rules';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const PER_SECOND = 500;
/** Milliseconds for which the service does not run. */
const STALL = 1_500;

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

describe('the load generator', () => {
  let rules: RuleFolder;
  let weir: WeirProcess;
  let generator: Generator | undefined;

  beforeEach(async () => {
    rules = await RuleFolder.with({ [RULE_FILE]: RULES });
    weir = await WeirProcess.start({ env: { ...rules.env, DISABLE_STATS: 'true' } });
  });

  afterEach(async () => {
    generator?.close();
    await weir[Symbol.asyncDispose]();
    await rules[Symbol.asyncDispose]();
  });

  async function start(load: Load): Promise<Generator> {
    const protocol = protocolOf(load);
    const port = protocol === 'json' ? weir.ports.http : weir.ports.grpc;
    const targets = [{ host: '127.0.0.1', port }];
    generator = new Generator({ targets, protocol, connections: 4, messages: messagesOf(load) });
    await generator.open();
    return generator;
  }

  it.each(['hot-key', '10k-keys', '10-descriptors', 'unlimited', 'json'] as const)(
    'sends the calls of %s, which the service counts once each and answers with OK',
    async (name) => {
      const load = LOADS[name];
      const calls = 1_000;
      const running = await start(load);
      running.closed(2, calls);
      await running.idle(60_000);
      const interval = running.mark();
      const statistics = await weir.statistics();
      const hits = load.descriptors.map((key) =>
        statistics.get(`ratelimit.service.rate_limit.bench.${key}.total_hits`),
      );

      expect(interval).toMatchObject({ sent: calls, codes: [0, calls, 0, 0], failed: 0, outstanding: 0 });
      expect(hits).toEqual(load.descriptors.map(() => calls));
    },
  );

  it('visits each value once in a round', async () => {
    const running = await start({ ...LOADS['over-limit'], values: 50 });
    running.closed(2, 50);
    await running.idle(60_000);
    const first = running.mark();
    running.closed(2, 50);
    await running.idle(60_000);
    const second = running.mark();

    // Each of the values passes once.
    expect([first.codes, second.codes]).toEqual([
      [0, 50, 0, 0],
      [0, 0, 50, 0],
    ]);
  });

  it.each([
    ['gRPC, which has many calls in flight', LOADS['hot-key']],
    ['/json, whose calls wait for each other', LOADS.json],
  ])(
    'keeps the pace of an open loop while the service stalls, and charges the stall to each call: %s',
    async (_, load) => {
      const running = await start(load);
      running.mark();
      running.paced(PER_SECOND);
      await sleep(5 * STEP);
      weir.signal('SIGSTOP');
      await sleep(STALL);
      weir.signal('SIGCONT');
      await sleep(5 * STEP);
      await running.stop(60_000);
      const { sent, codes, failed, outstanding, latency, timeline, seconds } = running.mark();
      const answered = codes.reduce((sum, each) => sum + each, 0);

      expect([answered, failed, outstanding]).toEqual([sent, 0, 0]);
      // Calls were due at the same rate all the time, also while none was answered.
      expect(sent).toBeLessThanOrEqual(seconds * PER_SECOND);
      expect(sent).toBeGreaterThanOrEqual((STALL / 1_000) * PER_SECOND);
      expect(timeline.filter((step) => step.answered === 0).length).toBeLessThanOrEqual(timeline.length - STALL / STEP);
      // At least half of the calls that were due in the stall waited for half of it.
      expect(latency.max).toBeGreaterThan(STALL * 0.9);
      expect(timeline.filter(({ worst }) => worst > STALL / 2).length).toBeGreaterThanOrEqual(STALL / 2 / STEP - 1);
    },
  );

  it('charges its own lateness to the calls that were due meanwhile', async () => {
    const running = await start(LOADS['hot-key']);
    running.mark();
    running.paced(PER_SECOND);
    await sleep(STEP);
    // Blocks this thread, which is that of the generator.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL);
    await sleep(STEP);
    await running.stop(60_000);
    const { sent, latency, lag, seconds } = running.mark();

    expect(sent).toBeGreaterThanOrEqual((STALL / 1_000) * PER_SECOND);
    for (const { max, p50 } of [latency, lag]) {
      expect(max).toBeGreaterThan(STALL * 0.9);
      // The calls were due evenly over the time of the block; those that were due outside of it did not wait.
      expect(p50).toBeGreaterThan(0.9 * (STALL - (seconds * 1_000) / 2));
    }
  });

  it('counts the calls of a connection that ends as failed', async () => {
    const running = await start(LOADS['hot-key']);
    weir.signal('SIGSTOP');
    running.closed(3, 12);
    await sleep(2 * STEP);
    weir.signal('SIGKILL');
    await running.idle(60_000);

    expect(running.mark()).toMatchObject({ sent: 12, codes: [0, 0, 0, 0], failed: 12, outstanding: 0 });
  });

  it('moves its calls to other connections when the service goes away, and none fails', async () => {
    await using other = await WeirProcess.start({ env: { ...rules.env, DISABLE_STATS: 'true' } });
    const load = LOADS['10k-keys'];
    const targets = [weir, other].map(({ ports }) => ({ host: '127.0.0.1', port: ports.grpc }));
    generator = new Generator({ targets, protocol: 'grpc', connections: 4, messages: messagesOf(load) });
    await generator.open();
    generator.paced(PER_SECOND);
    await sleep(3 * STEP);
    weir.signal('SIGTERM');
    const code = await weir.exited;
    await sleep(3 * STEP);
    const unanswered = await generator.stop(60_000);
    const { sent, codes, failed } = generator.mark();

    expect([code, failed, unanswered, codes[1]]).toEqual([0, 0, 0, sent]);
  });

  it('answers every call of a closed loop in which connections are replaced', async () => {
    const running = await start(LOADS['hot-key']);
    running.closed(8);
    for (let replaced = 0; replaced < 20; replaced += 1) {
      await running.replaceOldestConnection();
      await sleep(STEP / 10);
    }

    expect(await running.stop(10_000)).toBe(0);
    const { sent, codes, failed } = running.mark();
    expect([codes[1], failed]).toEqual([sent, 0]);
  });
});

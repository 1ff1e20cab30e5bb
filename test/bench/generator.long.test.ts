import { Generator } from '../../bench/suite/load/generator';
import { LOADS, type Load, RULE_FILE, protocolOf, rulesWith } from '../../bench/suite/scenarios/loads';
import { messagesOf } from '../../bench/suite/scenarios/messages';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';
import { until } from '../support/waiting/until';

const PER_SECOND = 500;
/** Milliseconds for which the service, or the generator, does not run. */
const STALL = 1_500;

describe('the load generator', () => {
  let rules: RuleFolder;
  let weir: WeirProcess;
  let generator: Generator;

  beforeAll(async () => void (rules = await RuleFolder.with({ [RULE_FILE]: rulesWith() })));
  beforeEach(async () => void (weir = await startWeir()));
  afterEach(async () => {
    generator.close();
    await weir[Symbol.asyncDispose]();
  });
  afterAll(() => rules[Symbol.asyncDispose]());

  function startWeir(): Promise<WeirProcess> {
    return WeirProcess.start({ env: { ...rules.env, DISABLE_STATS: 'true' } });
  }

  async function start(load: Load, ...weirs: readonly WeirProcess[]): Promise<Generator> {
    const protocol = protocolOf(load);
    const targets = [weir, ...weirs].map(({ ports }) => ({
      host: '127.0.0.1',
      port: protocol === 'json' ? ports.http : ports.grpc,
      headers: load.headers ?? ('envoy' as const),
    }));
    generator = new Generator({ targets, protocol, connections: 4, messages: messagesOf(load) });
    await generator.open();
    return generator;
  }

  async function closed(running: Generator, calls: number): Promise<readonly number[]> {
    running.closed(2, calls);
    await running.idle(60_000);
    const { codes, failed, outstanding, sent } = running.mark();
    expect([sent, failed, outstanding]).toEqual([calls, 0, 0]);
    return codes;
  }

  function answers(running: Generator, count: number): Promise<unknown> {
    return until(`${count} answers`, () => running.answers() >= count);
  }

  it.each(['hot-key', '10k-keys', '10-descriptors', 'unlimited', 'json', 'deadlines'] as const)(
    'sends the calls of %s, which the service counts once each and answers with OK',
    async (name) => {
      const load: Load = LOADS[name];
      expect(await closed(await start(load), 1_000)).toEqual([0, 1_000, 0, 0]);
      const statistics = await weir.statistics();
      for (const key of load.descriptors) {
        expect(statistics.get(`ratelimit.service.rate_limit.bench.${key}.total_hits`)).toBe(1_000);
      }
    },
  );

  it('visits each value once in a round, of which each passes once', async () => {
    const running = await start({ ...LOADS['over-limit'], values: 50 });

    expect(await closed(running, 50)).toEqual([0, 50, 0, 0]);
    expect(await closed(running, 50)).toEqual([0, 0, 50, 0]);
  });

  it.each(['hot-key', 'json'] as const)(
    'keeps the pace of an open loop while the service stalls, and charges the stall to each call: %s',
    async (name) => {
      const running = await start(LOADS[name]);
      running.mark();
      running.paced(PER_SECOND);
      await answers(running, PER_SECOND / 4);
      weir.signal('SIGSTOP');
      await new Promise((resolve) => setTimeout(resolve, STALL));
      weir.signal('SIGCONT');
      await answers(running, PER_SECOND);
      await running.stop(60_000);
      const { sent, codes, failed, outstanding, latency, seconds } = running.mark();

      expect([codes.reduce((total, each) => total + each, 0), failed, outstanding]).toEqual([sent, 0, 0]);
      // Calls were due at the same rate all the time, also while none was answered.
      expect(sent).toBeLessThanOrEqual(seconds * PER_SECOND);
      expect(sent).toBeGreaterThanOrEqual((STALL / 1_000) * PER_SECOND);
      expect(latency.max).toBeGreaterThan(STALL * 0.9);
    },
  );

  it('moves its calls to other connections when the service goes away, and none fails', async () => {
    await using other = await startWeir();
    const running = await start(LOADS['10k-keys'], other);
    running.paced(PER_SECOND);
    await answers(running, PER_SECOND / 4);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    await answers(running, running.answers() + PER_SECOND / 4);

    expect(await running.stop(60_000)).toBe(0);
    const { sent, codes, failed } = running.mark();
    expect([failed, codes[1]]).toEqual([0, sent]);
  });
});

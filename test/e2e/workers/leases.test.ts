import { readFileSync } from 'node:fs';
import type { Explanation } from '../../../src/explain/explanation';
import type { CounterState } from '../../../src/operators/answers';
import { parseDecisionLine } from '../../support/data/decision-log-schema';
import { RuleFolder } from '../../support/data/rule-folder';
import { TemporaryFolder } from '../../support/data/temporary-folder';
import { WeirProcess } from '../../support/processes/weir-process';
import { TcpReceiver } from '../../support/servers/statsd-receivers';
import { DOCUMENTED } from '../../integration/statistics/documented-statistics';
import { Callers } from './callers';
import * as instance from './instance';

function ruleFile(lease: boolean): string {
  return `domain: shop
descriptors:
  - { key: busy, rate_limit: { unit: year, requests_per_unit: 1000000, lease: ${lease} } }
  - { key: brief, rate_limit: { unit: second, requests_per_unit: 100000, lease: true } }
`;
}

const COUNTER = '/api/counters?domain=shop&descriptor=';

async function counterOf(weir: WeirProcess, descriptor: string): Promise<CounterState> {
  return (await instance.api(weir, `GET ${COUNTER}${descriptor}`)) as unknown as CounterState;
}

/** When the counter of a descriptor has this count, and nothing of it is held any more. */
async function counted(weir: WeirProcess, descriptor: string, expected: number): Promise<void> {
  await weir.until(`what is held of ${descriptor} to be given back`, async () => {
    return (await counterOf(weir, descriptor)).leased === 0;
  });
  expect((await counterOf(weir, descriptor)).count).toBe(expected);
}

type Leases = Readonly<Record<'granted' | 'used' | 'returned' | 'unused' | 'calls_saved' | 'keys', number>>;

async function leasesOf(weir: WeirProcess): Promise<Leases> {
  const names = ['granted', 'used', 'returned', 'unused', 'calls_saved', 'keys'] as const;
  const statistics = await weir.statistics();
  return Object.fromEntries(names.map((name) => [name, statistics.get(`ratelimit.lease.${name}`)])) as Leases;
}

/** When all that was granted has ended. */
async function endedLeases(weir: WeirProcess): Promise<Leases> {
  return weir.until('all leases to have ended', async () => {
    const leases = await leasesOf(weir);
    return leases.granted === leases.used + leases.returned + leases.unused && leases;
  });
}

describe('an instance whose two workers lease hits of counters in memory', () => {
  let folder: TemporaryFolder;
  let rules: RuleFolder;
  let daemon: TcpReceiver;
  let weir: WeirProcess;
  beforeAll(async () => {
    folder = new TemporaryFolder();
    rules = await RuleFolder.with({ 'shop.yaml': ruleFile(true) });
    daemon = await TcpReceiver.start();
    weir = await WeirProcess.start({
      env: {
        ...rules.env,
        ...{ WORKERS: '2', BACKEND_TYPE: 'memory', OPERATOR_TOKEN: instance.TOKEN },
        ...{ DECISION_LOG: 'all', DECISION_LOG_OUTPUT: folder.at('decisions') },
        ...{ USE_PUSHSTATS: 'true', PUSHSTATS_HOST: '127.0.0.1', PUSHSTATS_PORT: String(daemon.port) },
      },
    });
  });
  afterAll(async () => {
    await weir?.[Symbol.asyncDispose]();
    await daemon?.[Symbol.asyncDispose]();
    await rules?.[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  it('decides most calls of a busy key where they arrive, counts each of them, and shows what is held and used', async () => {
    await using both = await Callers.call(weir, 'busy=a');
    const held = await weir.until('a counter of which hits are held', async () => {
      const state = await counterOf(weir, 'busy=a');
      // What the workers hold is read after the count, to which they have added meanwhile.
      return (state.leased ?? 0) > 0 && state.count >= state.leased! && state;
    });
    expect(held.count).toBeGreaterThanOrEqual(held.leased!);
    const body = { domain: 'shop', descriptors: [{ entries: [{ key: 'busy', value: 'a' }] }] };
    await weir.until('an explanation with what is held', async () => {
      const { descriptors } = (await instance.api(weir, 'POST /api/explanations', { body })) as unknown as Explanation;
      const { counter, reason } = descriptors[0]!;
      return (counter?.leased ?? 0) > 0 && / hits are leased here; the count would be /.test(reason);
    });
    await both.load.more(3_000, weir);
    const passed = await both.end();
    await counted(weir, 'busy=a', passed);
    const { used, calls_saved: saved } = await endedLeases(weir);
    expect([used, saved > passed / 2]).toEqual([saved, true]);
    const lines = await weir.until('all decisions to be written', () => {
      const written = readFileSync(folder.at('decisions'), 'utf8').trimEnd().split('\n');
      return written.length === passed && written;
    });
    const leased = lines.filter((line) => line.includes('"leased":true'));
    expect(leased).toHaveLength(saved);
    parseDecisionLine(leased[0]!);
  });

  it('has moved all statistics of leases, also that of hits that are left when their window ends', async () => {
    const names = DOCUMENTED.filter(({ written }) => written.startsWith('ratelimit.lease.'));
    expect(names).toHaveLength(6);
    await using both = await Callers.call(weir, 'brief=a');
    const leases = await weir.until('hits that are left', async () => {
      const present = await leasesOf(weir);
      return present.unused > 0 && present.keys > 0 && present;
    });
    await both.end();
    expect(Object.keys(leases)).toHaveLength(names.length);
  });

  it('gives back what all workers hold before an operator changes a counter', async () => {
    await using both = await Callers.call(weir, 'busy=changed');
    await both.load.more(1_000, weir);
    const passed = await both.end();
    const body = { domain: 'shop', descriptor: 'busy=changed', count: 7 };
    const change = await instance.api(weir, 'PUT /api/counters', { body });
    expect(change).toMatchObject({ countBefore: passed, count: 7, leased: 0 });
    await endedLeases(weir);
    await counted(weir, 'busy=changed', 7);
  });

  it('loses nothing when the rules say under load that hits are not leased, and leases none from then on', async () => {
    await using both = await Callers.call(weir, 'busy=drill');
    await both.load.more(1_000, weir);
    await rules.write('shop.yaml', ruleFile(false));
    await weir.line(/rules loaded.*1 rule changed \(shop\.busy\)/);
    const { granted } = await endedLeases(weir);
    expect((await counterOf(weir, 'busy=drill')).leased).toBeNull();
    await both.load.more(1_000, weir);
    const passed = await both.end();
    expect((await counterOf(weir, 'busy=drill')).count).toBe(passed);
    expect((await leasesOf(weir)).granted).toBe(granted);
  });

  it('has given everything back when it has drained under load', async () => {
    await rules.write('shop.yaml', ruleFile(true));
    await weir.until('hits to be leased again', async () => {
      await using both = await Callers.call(weir, 'busy=again');
      await both.load.more(500, weir);
      return (await counterOf(weir, 'busy=again')).leased !== null;
    });
    await using both = await Callers.call(weir, 'busy=drained');
    await both.load.more(1_000, weir);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    const sums: Record<string, number> = {};
    for (const line of daemon.lines) {
      const [, name, value] = /^ratelimit\.lease\.(granted|used|returned|unused):(\d+)\|c$/.exec(line) ?? [];
      if (name !== undefined) sums[name] = (sums[name] ?? 0) + Number(value);
    }
    const { granted = 0, used = 0, returned = 0, unused = 0 } = sums;
    expect(granted).toBeGreaterThan(0);
    expect(used + returned + unused).toBe(granted);
  });
});

it('an instance with LEASES=off leases nothing, and decides by the same rules', async () => {
  await using rules = await RuleFolder.with({ 'shop.yaml': ruleFile(true) });
  const env = { WORKERS: '2', BACKEND_TYPE: 'memory', OPERATOR_TOKEN: instance.TOKEN, LEASES: 'off' };
  await using weir = await WeirProcess.start({ env: { ...rules.env, ...env } });
  await using both = await Callers.call(weir, 'busy=a');
  await both.load.more(1_000, weir);
  const passed = await both.end();
  expect(await counterOf(weir, 'busy=a')).toMatchObject({ count: passed, leased: null });
  expect([...(await weir.statistics()).keys()].filter((name) => name.startsWith('ratelimit.lease.'))).toEqual([]);
});

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CASES } from '../../bench/leases/cases';
import { earlyDenials, simulateAll } from '../../bench/leases/report';
import { LIMITS } from '../../bench/soak/model';
import { type SoakSetup, soakSection } from '../../bench/soak/report';
import { soakService } from '../../bench/soak/soak-service';
import type { Calls } from '../../bench/suite/measure/phase';
import { replaceSections } from '../../bench/suite/report/pages';
import type { Results } from '../../bench/suite/results';
import { TemporaryFolder } from '../support/data/temporary-folder';

const ROOT = join(__dirname, '../..');
/** Milliseconds: only ends runs that hang. */
const TIMEOUT = 400_000;
/** What may grow without a leak in a service that has just been started: compiled code, for example. */
const GROWTH = 10 * 1_024 * 1_024;

const folder = new TemporaryFolder();
afterAll(() => folder[Symbol.dispose]());

/** Runs a benchmark with these options; returns what it prints. */
async function bench(script: string, ...options: readonly string[]): Promise<string> {
  const hook = join(ROOT, 'test/support/processes/typescript-hook.cjs');
  const args = ['--require', hook, join(ROOT, 'bench', script), ...options];
  return (await promisify(execFile)(process.execPath, args, { cwd: ROOT })).stdout;
}

function read(file: string): unknown {
  return JSON.parse(readFileSync(folder.at(file), 'utf8'));
}

/** 0 when every call is accounted for. */
function balanceOf({ sent, inFlightBefore, expected, unexpected, failed, inFlight }: Calls): number {
  return sent + inFlightBefore - expected - unexpected - failed - inFlight;
}

describe('npm run bench', () => {
  it(
    'measures every scenario that was asked for, accounts for every call, and prints what it writes',
    async () => {
      const only = ['memory/json', 'redis/over-limit', 'redis/over-limit-cached', 'redis/tls', 'memory-per-key/redis'];
      const short = ['--quick', '--seconds', '0.3', '--keys', '50000', '--out', folder.base];
      const output = await bench('suite/run.ts', ...short, '--only', only.join(','));
      const { decisions, memory } = read('bench.json') as Results;

      expect(decisions.map(({ store, load }) => `${store}/${load}`).toSorted()).toEqual(only.slice(0, 4).toSorted());
      for (const { store, saturation, paced } of decisions) {
        for (const { calls, latency } of [saturation, ...paced.map(({ phase }) => phase)]) {
          expect([balanceOf(calls), calls.failed, calls.unexpected]).toEqual([0, 0, 0]);
          expect(calls.expected).toBeGreaterThan(0);
          const quantiles = [latency.p50, latency.p99, latency.p999, latency.max];
          expect(quantiles).toEqual(quantiles.toSorted((one, other) => one - other));
        }
        expect(paced.map(({ share }) => share)).toEqual([0.5]);
        expect(saturation.cpu.service).toBeGreaterThan(0);
        if (store !== 'redis') expect(saturation.cpu.store).toBe(0);
      }
      // In all: the system counts CPU time in steps of 10 ms, which a store may not reach in one phase.
      const phases = decisions.flatMap(({ saturation, paced }) => [saturation, ...paced.map(({ phase }) => phase)]);
      expect(phases.reduce((sum, { cpu }) => sum + cpu.store, 0)).toBeGreaterThan(0);
      // Many decisions share a call of a script, which calls a command for each key.
      const { commands } = decisions.find(({ load }) => load === 'over-limit')!.saturation;
      expect(commands!.sent).toBeGreaterThan(0);
      expect(commands!.sent).toBeLessThan(1);
      expect(commands!.executed).toBeGreaterThan(commands!.sent);
      // More than the characters of a key and its value.
      expect([memory[0]!.keys, memory[0]!.data! > 40]).toEqual([50_000, true]);
      const tables = readFileSync(folder.at('report.md'), 'utf8').trim();
      expect(tables.split('\n').filter((line) => line.startsWith('| Redis, '))).toHaveLength(6);
      expect(output).toContain(tables);
    },
    TIMEOUT,
  );
});

const SETUPS: readonly SoakSetup[] = [
  { store: 'redis', workers: 1 },
  { store: 'memory', workers: 2 },
];

describe('a short soak', () => {
  it.each(SETUPS)(
    'of $store with WORKERS=$workers has every disturbance, no wrong count, and no leak',
    async (setup) => {
      const every = { reload: 1, turnover: 1, connection: 0.5, interruption: 4, sample: 1 };
      const options = { seconds: 12, values: 200, every, away: 200, warmUp: 1_000, saturate: 200 };
      const report = await soakService(setup, options, () => undefined);

      expect([report.firstWrong, report.wrongCounts, report.malformed]).toEqual([undefined, 0, 0]);
      const { sent, answered, failed, unanswered } = report.calls;
      expect([report.failedOtherwise, report.failedInOutages]).toEqual([0, failed]);
      expect([sent, unanswered, report.openCalls]).toEqual([answered + failed, 0, 0]);
      expect([report.storeRestarts > 0, report.workersKilled > 0]).toEqual([
        setup.store === 'redis',
        setup.workers > 1,
      ]);
      expect(report.limitsSeen).toEqual([...LIMITS]);
      const counts = [answered, failed, report.values, report.outages.length, report.reloads, report.connections];
      for (const count of [...counts, report.generations - 1]) expect(count).toBeGreaterThan(0);
      const [first, ...others] = report.samples.map(({ heap }) => heap);
      expect(Math.max(...others) - first!).toBeLessThan(GROWTH * setup.workers);
      expect(soakSection([report])).toMatch(/\| no wrong count \| yes \|/);
    },
    TIMEOUT,
  );
});

it('npm run bench:leases has written the table of bench/leases/README.md', () => {
  const page = readFileSync(join(ROOT, 'bench/leases/README.md'), 'utf8');
  expect(page).toBe(replaceSections(page, { leases: earlyDenials(simulateAll(CASES)) }));
});

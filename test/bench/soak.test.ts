import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSoaks, writeSoak } from '../../bench/soak/results';
import type { SoakSetup } from '../../bench/soak/setup';
import type { SoakReport } from '../../bench/soak/soak-report';
import { soakService } from '../../bench/soak/soak-service';
import { LIMITS } from '../../bench/soak/rules';
import { soakChart } from '../../bench/soak/soak-chart';
import { soakSection } from '../../bench/soak/soak-section';
import { elementsOf } from './well-formed';

/** What may grow without a leak in a service that has just been started: compiled code, for example. */
const GROWTH = 10 * 1_024 * 1_024;

const SETUPS: readonly SoakSetup[] = [
  { store: 'redis', workers: 1 },
  { store: 'memory', workers: 2 },
];

describe.each(SETUPS)('a short soak of $store with WORKERS=$workers', (setup) => {
  let report: SoakReport;
  beforeAll(async () => {
    const every = { reload: 1, turnover: 1, connection: 0.5, interruption: 4, sample: 1 };
    const options = { seconds: 12, values: 200, every, away: 200, warmUp: 1_000, saturate: 200 };
    report = await soakService(setup, options, () => undefined);
  });

  it('leaves no wrong count', () => {
    expect([report.firstWrong, report.wrongCounts, report.malformed]).toEqual([undefined, 0, 0]);
    expect(report.values).toBeGreaterThan(0);
  });

  it('lets calls fail only while the store is away or a worker is missing', () => {
    const { sent, answered, failed, unanswered } = report.calls;

    expect(report.failedOtherwise).toBe(0);
    expect(report.failedInOutages).toBe(failed);
    expect(failed).toBeGreaterThan(0);
    expect(answered).toBeGreaterThan(0);
    expect([sent, unanswered, report.openCalls]).toEqual([answered + failed, 0, 0]);
  });

  it('has had every kind of disturbance', () => {
    expect(report.outages.length).toBeGreaterThan(0);
    expect(report.storeRestarts > 0).toBe(setup.store === 'redis');
    expect(report.workersKilled > 0).toBe(setup.workers > 1);
    expect(report.reloads).toBeGreaterThan(0);
    expect(report.limitsSeen).toEqual([...LIMITS]);
    expect(report.generations).toBeGreaterThan(1);
    expect(report.connections).toBeGreaterThan(0);
  });

  it('leaves the memory as it was, but for what the service compiles in the first seconds', () => {
    const [first, ...others] = report.samples.map(({ heap }) => heap);

    expect(others.length).toBeGreaterThan(0);
    expect(Math.max(...others) - first!).toBeLessThan(GROWTH * setup.workers);
  });

  it('has a column of the table and a well-formed chart', () => {
    expect(soakSection([report])).toMatch(/\| no wrong count \| yes \|/);
    expect(elementsOf(soakChart(report))).toContain('polyline');
  });
});

describe('the results of soaks', () => {
  let folder: string;
  beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'weir-soaks-'))));
  afterEach(() => rm(folder, { recursive: true }));

  function reportOf(setup: SoakSetup, seconds: number): SoakReport {
    return { setup, seconds } as SoakReport;
  }

  it('are one report for each setup, in the same order always', () => {
    const file = join(folder, 'results/soak.json');
    const [one, two] = SETUPS as readonly [SoakSetup, SoakSetup];

    expect(readSoaks(file)).toEqual([]);
    expect(writeSoak(file, reportOf(two, 1))).toEqual([reportOf(two, 1)]);
    expect(writeSoak(file, reportOf(one, 2))).toEqual([reportOf(one, 2), reportOf(two, 1)]);
    expect(writeSoak(file, reportOf(two, 3))).toEqual([reportOf(one, 2), reportOf(two, 3)]);
    expect(readSoaks(file)).toEqual([reportOf(one, 2), reportOf(two, 3)]);
  });

  it('are not read from a file that has something else', async () => {
    const file = join(folder, 'soak.json');
    await writeFile(file, '{"seconds":600}');

    expect(() => readSoaks(file)).toThrow(`${file} is no list of soaks: remove it, or name another file with --out`);
  });
});

import type { SoakReport } from '../../bench/soak/soak-report';
import { soakService } from '../../bench/soak/soak-service';
import { LIMITS } from '../../bench/soak/rules';
import { soakChart } from '../../bench/soak/soak-chart';
import { soakSection } from '../../bench/soak/soak-section';
import { elementsOf } from './well-formed';

/** What may grow without a leak in a service that has just been started: compiled code, for example. */
const GROWTH = 10 * 1_024 * 1_024;

describe('a short soak, with reloads, new keys, new connections and restarts of the store,', () => {
  let report: SoakReport;
  beforeAll(async () => {
    const every = { reload: 1, turnover: 1, connection: 0.5, restart: 4, sample: 1 };
    report = await soakService({ seconds: 10, every, away: 200, warmUp: 1_000, saturate: 200 }, () => undefined);
  });

  it('leaves no wrong count', () => {
    expect([report.firstWrong, report.wrongCounts, report.malformed]).toEqual([undefined, 0, 0]);
    expect(report.values).toBeGreaterThan(0);
  });

  it('lets calls fail only while the store is away', () => {
    const { sent, answered, failed, unanswered } = report.calls;

    expect(report.failedOtherwise).toBe(0);
    expect(report.failedWhileAway).toBe(failed);
    expect(failed).toBeGreaterThan(0);
    expect(answered).toBeGreaterThan(0);
    expect([sent, unanswered, report.openCalls]).toEqual([answered + failed, 0, 0]);
  });

  it('has had every kind of disturbance', () => {
    expect(report.outages.length).toBeGreaterThan(0);
    expect(report.reloads).toBeGreaterThan(0);
    expect(report.limitsSeen).toEqual([...LIMITS]);
    expect(report.generations).toBeGreaterThan(1);
    expect(report.connections).toBeGreaterThan(8);
  });

  it('leaves the memory as it was, but for what the service compiles in the first seconds', () => {
    const [first, ...others] = report.samples.map(({ heap }) => heap);

    expect(others.length).toBeGreaterThan(0);
    expect(Math.max(...others) - first!).toBeLessThan(GROWTH);
  });

  it('has a table and a well-formed chart', () => {
    expect(soakSection(report)).toMatch(/\| no wrong count \| yes \|/);
    expect(elementsOf(soakChart(report))).toContain('polyline');
  });
});

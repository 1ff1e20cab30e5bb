import { markdownTable } from '../suite/report/tables';
import type { Cases } from './cases';
import { type FleetResult, simulateFleet } from './simulation';

interface SimulatedCase {
  readonly title: string;
  readonly demands: readonly number[];
  /** Of each demand. */
  readonly results: readonly FleetResult[];
}

/** Of each demand, as a percentage. */
function percentages(results: readonly FleetResult[], shareOf: (result: FleetResult) => number): string {
  return `${results.map((result) => Number((100 * shareOf(result)).toFixed(2))).join(', ')} %`;
}

/** Simulates each fleet with each of its demands. */
export function simulateAll(cases: Cases): readonly SimulatedCase[] {
  return Object.entries(cases).map(([title, { demands, ...fleet }]) => {
    return { title, demands, results: demands.map((demand) => simulateFleet(fleet, demand)) };
  });
}

/** The table of README.md. */
export function earlyDenials(simulated: readonly SimulatedCase[]): string {
  const rows = simulated.map(({ title, demands, results }) => {
    return [
      title,
      `${demands.join(', ')} ×`,
      results.map(({ trips }) => trips.toPrecision(2)).join(', '),
      percentages(results, ({ atOnce }) => atOnce),
      percentages(results, ({ passed }) => passed),
      percentages(results, ({ leastPassed }) => leastPassed),
      percentages(results, ({ early }) => early),
    ];
  });
  const measures = [
    'trips per call',
    'decided at once',
    'passed',
    'in the worst window',
    'denied while others held hits',
  ];
  return markdownTable(['Limit and fleet', 'demand', ...measures], rows);
}

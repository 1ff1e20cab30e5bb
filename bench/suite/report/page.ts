import type { Results } from '../results';
import { costChart } from './cost-chart';
import { eventChart } from './event-chart';
import { latencyChart } from './latency-chart';
import { machineLines } from './machine-lines';
import { costTable, eventTable, latencyTable, memoryTable } from './tables';

/** Of saturation, for the chart of latencies. */
const SHARE = 0.5;

/** The charts by file name. Without those for which nothing was measured. */
export function chartsOf({ decisions, events }: Results): Readonly<Record<string, string>> {
  const isPaced = decisions.some(({ paced }) => paced.some(({ share }) => share === SHARE));
  return {
    ...(decisions.length > 0 && { 'cost.svg': costChart(decisions) }),
    ...(isPaced && { 'latency.svg': latencyChart(decisions, SHARE) }),
    ...(events.length > 0 && { 'events.svg': eventChart(events) }),
  };
}

/** The generated sections of docs/performance.md. */
export function sectionsOf(results: Results): Readonly<Record<string, string>> {
  return {
    machine: machineLines(results),
    cost: costTable(results),
    latency: latencyTable(results),
    memory: memoryTable(results.memory),
    events: eventTable(results.events),
  };
}

import { markdownTable } from '../suite/report/markdown-table';
import { integer, significant } from '../suite/report/numbers';
import { nameOf, slugOf } from './setup';
import { chartTitle } from './soak-chart';
import type { SoakReport } from './soak-report';
import { verdictsOf } from './verdicts';

const MEBIBYTE = 2 ** 20;

/** The file of a report's chart, in `docs/performance`. */
export function chartFile({ setup }: SoakReport): string {
  return `soak-${slugOf(setup)}.svg`;
}

/** The results of soaks, for docs/performance.md: a column for each, and their charts. */
export function soakSection(reports: readonly SoakReport[]): string {
  const columns = reports.map((report) => [...factsOf(report), ...resultsOf(report)]);
  const rows = columns[0]!.map(([name], row) => [name, ...columns.map((column) => column[row]![1])] as const);
  const table = markdownTable(['Soak', ...reports.map(({ setup }) => nameOf(setup))], rows);
  const charts = reports.map((report) => `![${chartTitle(report)}](performance/${chartFile(report)})`);
  return [machinesOf(reports), table, ...charts].join('\n\n');
}

/** One sentence for all soaks on the same machine with the same versions. */
function machinesOf(reports: readonly SoakReport[]): string {
  const lines = reports.map(
    ({ machine: { cpu, cores, node, redis }, date }) =>
      `${cpu}, ${cores} cores, Node ${node}, Redis ${redis}; ${date}.`,
  );
  return [...new Set(lines)].join('\n');
}

type Row = readonly [name: string, value: string];

function factsOf(report: SoakReport): readonly Row[] {
  const { seconds, paces, calls, values, outages, latency, heap, resident } = report;
  const away = outages.reduce((sum, [from, to]) => sum + to - from, 0);
  return [
    ['duration', `${integer(seconds)} s`],
    [
      'pace, half of the saturation of that time, calls/s',
      `${integer(Math.min(...paces))} to ${integer(Math.max(...paces))}`,
    ],
    ['calls sent', integer(calls.sent)],
    ['calls answered', integer(calls.answered)],
    ['calls without an outcome', integer(calls.unanswered)],
    ['different keys', `${integer(2 * values)}, in ${integer(report.generations)} generations`],
    ['reloads', integer(report.reloads)],
    ['connections replaced', integer(report.connections)],
    ['store restarts', integer(report.storeRestarts)],
    ['workers killed', integer(report.workersKilled)],
    ['store away or worker missing', `${away.toFixed(0)} s`],
    ['calls that failed meanwhile', integer(report.failedInOutages)],
    ['calls that failed otherwise', integer(report.failedOtherwise)],
    ['keys with a wrong count', `${integer(report.wrongCounts)} of ${integer(2 * values)}`],
    ['heap and buffers after collection', `median ${mebibytes(heap.median)}, growth ${percent(heap.growth)}`],
    ['resident memory', `median ${mebibytes(resident.median)}, growth ${percent(resident.growth)}`],
    ['p50, p99, p99.9', `${[latency.p50, latency.p99, latency.p999].map(significant).join(', ')} ms`],
  ];
}

function resultsOf(report: SoakReport): readonly Row[] {
  return verdictsOf(report).map(([statement, holds]) => [statement, holds ? 'yes' : '**no**']);
}

function mebibytes(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(1)} MiB`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

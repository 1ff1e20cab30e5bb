import { markdownTable } from '../suite/report/markdown-table';
import { integer, significant } from '../suite/report/numbers';
import type { SoakReport } from './soak-report';
import { verdictsOf } from './verdicts';

const MEBIBYTE = 2 ** 20;

/** The result of a soak, for docs/performance.md. */
export function soakSection(report: SoakReport): string {
  const { seconds, paces, calls, values, outages, latency, heap, resident } = report;
  const away = outages.reduce((sum, [from, to]) => sum + to - from, 0);
  const rows: readonly (readonly [string, string])[] = [
    ['duration', `${integer(seconds)} s`],
    [
      'pace, half of the saturation of that time',
      `${integer(Math.min(...paces))} to ${integer(Math.max(...paces))} calls/s`,
    ],
    [
      'calls',
      `${integer(calls.sent)} sent, ${integer(calls.answered)} answered, ${integer(calls.unanswered)} without an outcome`,
    ],
    ['different keys', `${integer(2 * values)}, in ${integer(report.generations)} generations`],
    ['reloads', integer(report.reloads)],
    ['connections opened', integer(report.connections)],
    ['store restarts', `${integer(outages.length)}, away for ${away.toFixed(0)} s altogether`],
    ['calls that failed while the store was away', integer(report.failedWhileAway)],
    ['calls that failed otherwise', integer(report.failedOtherwise)],
    ['keys with a wrong count', `${integer(report.wrongCounts)} of ${integer(2 * values)}`],
    ['heap and buffers after collection', `median ${mebibytes(heap.median)}, growth ${percent(heap.growth)}`],
    ['resident memory', `median ${mebibytes(resident.median)}, growth ${percent(resident.growth)}`],
    ['p50, p99, p99.9', `${[latency.p50, latency.p99, latency.p999].map(significant).join(', ')} ms`],
    ...verdictsOf(report).map(([statement, holds]) => [statement, holds ? 'yes' : '**no**'] as const),
  ];
  const { machine, date } = report;
  return `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, Redis ${machine.redis}; ${date}.\n\n${markdownTable(['Soak', 'Result'], rows)}`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(1)} MiB`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

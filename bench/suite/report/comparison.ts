import type { Comparison, Measurement } from '../against';
import type { Phase } from '../measure/phase';
import { LOADS } from '../scenarios/loads';
import { STORES } from '../scenarios/stores';
import { markdownTable } from './markdown-table';
import { integer, significant } from './numbers';

/** weir and another service side by side, a row for each load and pace. */
export function comparisonTable(comparisons: readonly Comparison[], other: string): string {
  const head = [
    'Load',
    'Pace',
    ...['weir', other].flatMap((name) => [`${name}: per second`, 'CPU µs', 'p50 ms', 'p99 ms', 'p99.9 ms', 'failed']),
  ];
  const rows = comparisons.flatMap((comparison) => {
    const title = `${LOADS[comparison.load].title}; weir with ${STORES[comparison.store].title}`;
    return phasesOf(comparison.weir).map(([pace, phase], index) => [
      title,
      pace,
      ...cells(phase),
      ...cells(phasesOf(comparison.other)[index]![1]),
    ]);
  });
  return markdownTable(head, rows);
}

function phasesOf({ saturation, paced }: Measurement): readonly (readonly [pace: string, phase: Phase])[] {
  return [
    ['saturation', saturation],
    ...paced.map(({ share, phase }) => [`${share * 100} % of the slower`, phase] as const),
  ];
}

function cells({ perSecond, cpu, latency, calls }: Phase): readonly string[] {
  const { p50, p99, p999 } = latency;
  return [
    integer(perSecond),
    significant(cpu.service),
    ...[p50, p99, p999].map(significant),
    calls.unexpected > 0 ? `${integer(calls.failed)}, ${integer(calls.unexpected)} differ` : integer(calls.failed),
  ];
}

import type { DecisionResult } from '../measure/decisions';
import { LOADS } from '../scenarios/loads';
import { STORES } from '../scenarios/stores';
import { logarithmicAxis } from './axes';
import { verticalGrid } from './grid';
import { significant } from './numbers';
import { type Child, element, line, svgDocument, text } from './svg';

const WIDTH = 820;
const TOP = 84;
const ROW = 22;
const LABELS = 250;
const RIGHT = 80;
const POINTS = [
  ['p50', 'first'],
  ['p99', 'second'],
  ['p999', 'third'],
] as const;
const NAMES = { p50: 'p50', p99: 'p99', p999: 'p99.9' } as const;

/** Latencies of the open loop at this share of saturation: three points for each scenario. */
export function latencyChart(decisions: readonly DecisionResult[], share: number): string {
  const measured = decisions.flatMap(({ load, store, paced }) => {
    const latency = paced.find((each) => each.share === share)?.phase.latency;
    return latency === undefined ? [] : [{ title: `${STORES[store].title}, ${LOADS[load].title}`, latency }];
  });
  const values = measured.flatMap(({ latency }) => POINTS.map(([point]) => latency[point]));
  const axis = logarithmicAxis(Math.min(...values), Math.max(...values), LABELS, WIDTH - RIGHT);
  const bottom = TOP + ROW * measured.length;
  const rows = measured.flatMap(({ title, latency }, index): Child[] => {
    const y = TOP + ROW * index + 8;
    return [
      text(LABELS - 8, y + 4, title, 'end'),
      line([axis.at(latency.p50), y], [axis.at(latency.p999), y], 'muted-line'),
      ...POINTS.map(([point, color]) => element('circle', { class: color, cx: axis.at(latency[point]), cy: y, r: 5 })),
      text(axis.at(latency.p999) + 10, y + 4, `${significant(latency.p999)} ms`, 'muted'),
    ];
  });
  const grid = verticalGrid(axis, TOP - 6, bottom);
  return svgDocument(
    {
      width: WIDTH,
      height: bottom + 44,
      title: `Latency in the open loop at ${share * 100} % of saturation`,
      subtitle: 'ms from the time at which a call was due to its answer, logarithmic; further left is better',
    },
    ...POINTS.flatMap(([point, color], index) => [
      element('circle', { class: color, cx: LABELS + 6 + 80 * index, cy: 62, r: 5 }),
      text(LABELS + 18 + 80 * index, 66, NAMES[point]),
    ]),
    ...grid,
    ...rows,
    text((LABELS + WIDTH - RIGHT) / 2, bottom + 36, 'ms, logarithmic', 'muted middle'),
  );
}

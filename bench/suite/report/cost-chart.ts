import type { DecisionResult } from '../measure/decisions';
import { LOADS } from '../scenarios/loads';
import { STORES } from '../scenarios/stores';
import { linearAxis } from './axes';
import { verticalGrid } from './grid';
import { significant } from './numbers';
import { type Child, element, svgDocument, text } from './svg';

const WIDTH = 820;
const TOP = 84;
const ROW = 22;
const BAR = 14;
const LABELS = 250;
const RIGHT = 80;

/** CPU time per decision at saturation: a bar for each scenario, of the service and of the store. */
export function costChart(decisions: readonly DecisionResult[]): string {
  const highest = Math.max(...decisions.map(({ saturation }) => total(saturation)));
  const bottom = TOP + ROW * decisions.length;
  const axis = linearAxis(highest, LABELS, WIDTH - RIGHT);
  const rows = decisions.flatMap(({ load, store, saturation }, index): Child[] => {
    const y = TOP + ROW * index;
    const service = axis.at(saturation.cpu.service ?? 0);
    const end = axis.at(total(saturation));
    return [
      text(LABELS - 8, y + 12, `${STORES[store].title}, ${LOADS[load].title}`, 'end'),
      element('rect', { class: 'first', x: LABELS, y, width: service - LABELS, height: BAR }),
      element('rect', { class: 'second', x: service, y, width: end - service, height: BAR }),
      text(end + 6, y + 12, `${significant(total(saturation))} µs`, 'muted'),
    ];
  });
  const grid = verticalGrid(axis, TOP - 6, bottom);
  return svgDocument(
    {
      width: WIDTH,
      height: bottom + 44,
      title: 'CPU time per decision at saturation',
      subtitle: 'µs of CPU per decision, all processes; shorter is better',
    },
    element('rect', { class: 'first', x: LABELS, y: 56, width: 12, height: 12 }),
    text(LABELS + 18, 66, 'service'),
    element('rect', { class: 'second', x: LABELS + 90, y: 56, width: 12, height: 12 }),
    text(LABELS + 108, 66, 'store'),
    ...grid,
    ...rows,
    text((LABELS + WIDTH - RIGHT) / 2, bottom + 36, 'µs of CPU per decision', 'muted middle'),
  );
}

function total({ cpu }: DecisionResult['saturation']): number {
  return (cpu.service ?? 0) + cpu.store;
}

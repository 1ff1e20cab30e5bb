import type { DecisionResult } from '../measure/decisions';
import type { Results } from '../results';
import type { LoadName } from '../scenarios/loads';
import { type StoreName, STORES } from '../scenarios/stores';
import { markdownTable } from './markdown-table';
import { integer, significant } from './numbers';

const SHOWN: readonly (readonly [StoreName, LoadName])[] = [
  ['memory', '10k-keys'],
  ['redis', '10k-keys'],
  ['memcached', '10k-keys'],
];
const SHARE = 0.5;

/** The figures of the README. */
export function headline({ decisions }: Results): string {
  const head = ['10,000 keys, counted in', 'decisions/s', 'CPU per decision', 'p50, p99, p99.9 at half of that rate'];
  const rows = SHOWN.flatMap(([store, load]) => {
    const result = decisions.find((each) => each.store === store && each.load === load);
    return result === undefined ? [] : [rowOf(result)];
  });
  return markdownTable(head, rows);
}

function rowOf({ store, saturation, paced }: DecisionResult): readonly string[] {
  const { service, store: inStore } = saturation.cpu;
  const latency = paced.find(({ share }) => share === SHARE)?.phase.latency;
  return [
    STORES[store].title,
    integer(saturation.perSecond),
    `${significant(service)} µs${store === 'memory' ? '' : `, and ${significant(inStore)} µs in the store`}`,
    latency === undefined ? '–' : `${[latency.p50, latency.p99, latency.p999].map(significant).join(', ')} ms`,
  ];
}

import type { DecisionResult } from '../measure/decisions';
import type { Results } from '../results';
import type { LoadName } from '../scenarios/loads';
import { type StoreName, STORES } from '../scenarios/stores';
import { markdownTable } from './markdown-table';
import { integer, significant } from './numbers';

const SHOWN: readonly (readonly [StoreName, LoadName, string])[] = [
  ['memory', '10k-keys', '1 descriptor'],
  ['memory', '3-descriptors', '3 descriptors'],
  ['redis', '10k-keys', '1 descriptor'],
  ['redis', '3-descriptors', '3 descriptors'],
  ['redis', '10-descriptors', '10 descriptors'],
  ['redis', 'over-limit-cached', '1 descriptor, over its limit, in the local cache'],
  ['redis-cluster', '10k-keys', '1 descriptor'],
  ['redis-cluster', '3-descriptors', '3 descriptors'],
  ['memcached', '10k-keys', '1 descriptor'],
  ['memcached', '3-descriptors', '3 descriptors'],
];
/** The share of the saturation at which an instance is planned: the rest is for bursts and for the failure of another one. */
const SHARE = 0.5;
const MICROSECONDS = 1e6;

/** What one process bears, for planning. */
export function sizing({ decisions }: Results): string {
  const head = ['Counted in', 'a call carries', 'plan per process', 'cores for that: service', 'store', 'p99'];
  const rows = SHOWN.map(([store, load, calls]) => {
    const result = decisions.find((each) => each.store === store && each.load === load);
    if (result === undefined) throw new Error(`no result of ${store}/${load}`);
    return rowOf(result, calls);
  });
  return markdownTable(head, rows);
}

function rowOf({ store, paced }: DecisionResult, calls: string): readonly string[] {
  const { perSecond, cpu, latency } = paced.find(({ share }) => share === SHARE)!.phase;
  function cores(microseconds: number | undefined): string {
    return significant(microseconds === undefined ? undefined : (perSecond * microseconds) / MICROSECONDS);
  }
  return [
    STORES[store].title,
    calls,
    `${integer(Math.floor(perSecond / 1_000) * 1_000)} calls/s`,
    cores(cpu.service),
    store === 'memory' ? '–' : cores(cpu.store),
    `${significant(latency.p99)} ms`,
  ];
}

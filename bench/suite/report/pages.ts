import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DecisionResult } from '../measure/decisions';
import type { Results } from '../results';
import type { LoadName } from '../scenarios/loads';
import { STORES, type StoreName } from '../scenarios/scenarios';
import { costTable, integer, latencyTable, machineLines, markdownTable, memoryTable, significant } from './tables';

/** Writes the figures of the results into bench/suite/README.md, docs/sizing.md and README.md. */
export function renderPages(root: string, results: Results): void {
  const { memory, ...others } = sectionsOf(results);
  renderSections(join(root, 'bench/suite/README.md'), others);
  renderSections(join(root, 'docs/sizing.md'), { sizing: sizing(results), memory });
  renderSections(join(root, 'README.md'), { headline: headline(results) });
}

/** Writes a page with only the tables of what was measured; returns them. */
export function writeReport(folder: string, results: Results): string {
  const { memory, ...others } = sectionsOf(results);
  const tables = [
    ...Object.values(results.decisions.length > 0 ? others : { machine: others.machine }),
    ...(results.memory.length > 0 ? [memory] : []),
  ].join('\n\n');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'report.md'), `${tables}\n`);
  return tables;
}

/** The generated sections of bench/suite/README.md, and the memory per key of docs/sizing.md. */
export function sectionsOf(results: Results) {
  return {
    machine: machineLines(results),
    cost: costTable(results),
    latency: latencyTable(results),
    memory: memoryTable(results.memory),
  };
}

export function renderSections(file: string, sections: Readonly<Record<string, string>>): void {
  writeFileSync(file, replaceSections(readFileSync(file, 'utf8'), sections));
}

/**
 * Replaces what is between the markers `<!-- bench:NAME -->` and `<!-- /bench:NAME -->` of a page; fails when one is
 * missing.
 */
export function replaceSections(page: string, sections: Readonly<Record<string, string>>): string {
  return Object.entries(sections).reduce((text, [name, content]) => {
    const [begin, end] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`];
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`the page has no section between ${begin} and ${end}`);
    return `${text.slice(0, from + begin.length)}\n\n${content}\n\n${text.slice(to)}`;
  }, page);
}

const HEADLINE: readonly StoreName[] = ['memory', 'redis', 'memcached'];

/** The figures of the README. */
export function headline({ decisions }: Results): string {
  const head = ['10,000 keys, counted in', 'decisions/s', 'CPU per decision', 'p50, p99, p99.9 at half of that rate'];
  const rows = HEADLINE.flatMap((store) =>
    decisions.filter((each) => each.store === store && each.load === '10k-keys').map(headlineRow),
  );
  return markdownTable(head, rows);
}

function headlineRow({ store, saturation, paced }: DecisionResult): readonly string[] {
  const { service, store: inStore } = saturation.cpu;
  const latency = paced.find(({ share }) => share === SHARE)?.phase.latency;
  return [
    STORES[store],
    integer(saturation.perSecond),
    `${significant(service)} µs${store === 'memory' ? '' : `, and ${significant(inStore)} µs in the store`}`,
    latency === undefined ? '–' : `${[latency.p50, latency.p99, latency.p999].map(significant).join(', ')} ms`,
  ];
}

const PLANNED: readonly (readonly [StoreName, LoadName, string])[] = [
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
/**
 * The share of the saturation at which an instance is planned: the rest is for bursts and for the failure of another
 * one.
 */
const SHARE = 0.5;
const MICROSECONDS = 1e6;

/** What one process bears, for planning. */
export function sizing({ decisions }: Results): string {
  const head = ['Counted in', 'a call carries', 'plan per process', 'cores for that: service', 'store', 'p99'];
  const rows = PLANNED.map(([store, load, calls]) => {
    const result = decisions.find((each) => each.store === store && each.load === load);
    if (result === undefined) throw new Error(`no result of ${store}/${load}`);
    return planningRow(result, calls);
  });
  return markdownTable(head, rows);
}

function planningRow({ store, paced }: DecisionResult, calls: string): readonly string[] {
  const { perSecond, cpu, latency } = paced.find(({ share }) => share === SHARE)!.phase;
  function cores(microseconds: number | undefined): string {
    return significant(microseconds === undefined ? undefined : (perSecond * microseconds) / MICROSECONDS);
  }
  return [
    STORES[store],
    calls,
    `${integer(Math.floor(perSecond / 1_000) * 1_000)} calls/s`,
    cores(cpu.service),
    store === 'memory' ? '–' : cores(cpu.store),
    `${significant(latency.p99)} ms`,
  ];
}

import type { MemoryResult } from '../measure/memory';
import { GENERATOR_IS_BUSY, type Phase } from '../measure/phase';
import type { Results } from '../results';
import { STORES, titleOf } from '../scenarios/scenarios';

/** A table whose first column is aligned to the left and all others to the right. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const alignment = head.map((_, column) => (column === 0 ? '---' : '---:'));
  return [head, alignment, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** With separators for thousands; a dash when it was not measured. */
export function integer(value: number | undefined): string {
  return value === undefined ? '–' : Math.round(value).toLocaleString('en-US');
}

/** With two significant digits, and all of a larger integer; a dash when it was not measured. */
export function significant(value: number | undefined): string {
  if (value === undefined) return '–';
  if (Math.abs(value) >= 10) return integer(value);
  return value === 0 ? '0' : Number(value.toPrecision(2)).toString();
}

/** Where and how the measurements were made, as a list. */
export function machineLines({ date, machine, seconds, decisions, settings }: Results): string {
  const { cpu, cores, memory, system, node, redis = 'none', memcached = 'none' } = machine;
  const phases = decisions.flatMap(({ saturation, paced }) => [saturation, ...paced.map(({ phase }) => phase)]);
  const sorted = phases.map(({ otherCores }) => otherCores).toSorted((one, other) => one - other);
  const median = (sorted[Math.floor(sorted.length / 2)] ?? 0).toFixed(1);
  const set = Object.entries(settings).map(([name, value]) => `; \`${name}=${value}\``);
  return [
    `- Machine: ${cpu}, ${cores} cores, ${memory} GiB of memory, ${system}`,
    `- Node ${node}, Redis ${redis}, memcached ${memcached}`,
    `- ${date}; ${seconds} s for each measurement${set.join('')}`,
    `- Other programs on this machine used ${median} of ${cores} cores in the median measurement, up to ` +
      `${(sorted.at(-1) ?? 0).toFixed(1)}. The load generator and the stores share the cores with the service.`,
  ].join('\n');
}

/** What a decision costs: a row for each scenario. */
export function costTable({ decisions }: Results): string {
  const head = [
    'Store, load',
    'decisions/s at saturation',
    'CPU, µs: service',
    'store',
    'sent to the store',
    'executed there',
    ...(decisions[0]?.paced ?? []).map(({ share }) => `CPU at ${share * 100} %, µs`),
    'other programs, cores',
  ];
  const rows = decisions.map(({ load, store, saturation, paced }) => [
    titleOf({ load, store }),
    `${integer(saturation.perSecond)}${mark(saturation)}`,
    significant(saturation.cpu.service),
    store === 'memory' ? '–' : significant(saturation.cpu.store),
    significant(saturation.commands?.sent),
    significant(saturation.commands?.executed),
    ...paced.map(({ phase: { cpu } }) =>
      store === 'memory' ? significant(cpu.service) : `${significant(cpu.service)} + ${significant(cpu.store)}`,
    ),
    saturation.otherCores.toFixed(1),
  ]);
  return markdownTable(head, rows);
}

/** Latencies of the open loops: a row for each scenario. */
export function latencyTable({ decisions }: Results): string {
  const shares = (decisions[0]?.paced ?? []).map(({ share }) => share);
  const head = ['p50, p99, p99.9 in ms', ...shares.map((share) => `at ${share * 100} %`), 'failed calls'];
  const rows = decisions.map(({ load, store, saturation, paced }) => [
    titleOf({ load, store }),
    ...paced.map(({ phase }) => {
      const { p50, p99, p999 } = phase.latency;
      return `${[p50, p99, p999].map(significant).join(', ')}${mark(phase)}`;
    }),
    failed([saturation, ...paced.map(({ phase }) => phase)]),
  ]);
  return markdownTable(head, rows);
}

/** Bytes per live key: a row for each store. */
export function memoryTable(memory: readonly MemoryResult[]): string {
  const head = ['Bytes per live key', 'keys', 'service: heap', 'service: resident', 'store: data'];
  const rows = memory.map(({ store, keys, service, data }) => [
    STORES[store],
    ...[keys, service.heap, service.resident, data].map(integer),
  ]);
  return markdownTable(head, rows);
}

/** Marks a measurement that the generator limited. */
function mark({ generatorBusy }: Phase): string {
  return generatorBusy > GENERATOR_IS_BUSY ? ' †' : '';
}

function failed(phases: readonly Phase[]): string {
  const failures = phases.reduce((sum, { calls }) => sum + calls.failed, 0);
  const unexpected = phases.reduce((sum, { calls }) => sum + calls.unexpected, 0);
  return unexpected === 0 ? integer(failures) : `${integer(failures)}; ${integer(unexpected)} with another answer`;
}

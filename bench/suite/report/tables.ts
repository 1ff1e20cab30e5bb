import type { EventName, EventResult } from '../measure/events';
import type { MemoryResult } from '../measure/memory';
import { GENERATOR_IS_BUSY, type Phase } from '../measure/phase';
import type { Results } from '../results';
import { LOADS } from '../scenarios/loads';
import { STORES } from '../scenarios/stores';
import { markdownTable } from './markdown-table';
import { integer, significant } from './numbers';

export const TITLES_OF_EVENTS: Readonly<Record<EventName, string>> = {
  reload: '10,000 rules reloaded, four times',
  'store-restart': 'Redis killed, and started again after a second',
  'rolling-restart': 'two instances restarted in turn',
};

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
    `${STORES[store].title}, ${LOADS[load].title}`,
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

/** Latencies of the open loops, and the pauses of the machine: a row for each scenario. */
export function latencyTable({ decisions }: Results): string {
  const shares = (decisions[0]?.paced ?? []).map(({ share }) => share);
  const head = [
    'p50, p99, p99.9 in ms',
    ...shares.map((share) => `at ${share * 100} %`),
    'the machine alone: p99, p99.9',
    'failed calls',
  ];
  const rows = decisions.map(({ load, store, pauses, saturation, paced }) => [
    `${STORES[store].title}, ${LOADS[load].title}`,
    ...paced.map(({ phase }) => {
      const { p50, p99, p999 } = phase.latency;
      return `${[p50, p99, p999].map(significant).join(', ')}${mark(phase)}`;
    }),
    `${significant(pauses.p99)}, ${significant(pauses.p999)}`,
    failed([saturation, ...paced.map(({ phase }) => phase)]),
  ]);
  return markdownTable(head, rows);
}

/** Bytes per live key: a row for each store. */
export function memoryTable(memory: readonly MemoryResult[]): string {
  const head = ['Bytes per live key', 'keys', 'service: heap', 'service: resident', 'store: data'];
  const rows = memory.map(({ store, keys, service, data }) => [
    STORES[store].title,
    ...[keys, service.heap, service.resident, data].map(integer),
  ]);
  return markdownTable(head, rows);
}

/** What happens in mid-run: a row for each event. */
export function eventTable(events: readonly EventResult[]): string {
  const head = ['In mid-run', 'calls/s', 'calls', 'failed', 'failed between', 'p50 ms', 'p99 ms', 'longest ms'];
  const rows = events.map(({ event, perSecond, calls, failures, latency }) => [
    TITLES_OF_EVENTS[event],
    integer(perSecond),
    integer(calls.sent),
    integer(calls.failed),
    failures === undefined ? '–' : `${failures.first.toFixed(1)} and ${failures.last.toFixed(1)} s`,
    ...[latency.p50, latency.p99, latency.max].map(significant),
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

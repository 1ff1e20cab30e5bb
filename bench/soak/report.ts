import { existsSync, readFileSync } from 'node:fs';
import type { Latency } from '../suite/load/interval';
import type { Machine } from '../suite/processes/machine';
import { integer, markdownTable, significant } from '../suite/report/tables';
import { writeJson } from '../suite/results';

/** What a soak is played against: a store, and so many processes of the service. */
export interface SoakSetup {
  readonly store: 'redis' | 'memory';
  readonly workers: number;
}

/** For readers. */
export function nameOf({ store, workers }: SoakSetup): string {
  const name = store === 'redis' ? 'Redis' : 'memory';
  return workers === 1 ? name : `${name}, ${workers} workers`;
}

/**
 * How far heap and buffers after a collection, and resident memory, may grow after the first third, as a share of the
 * median.
 */
export const FLAT = { heap: 0.05, resident: 0.1 } as const;

export interface SoakOptions {
  readonly seconds: number;
  /** Different values of each generation of calls. */
  readonly values: number;
  /** Seconds between two disturbances of each kind, and between two samples of the memory. */
  readonly every: {
    readonly reload: number;
    /** New values for all calls. */
    readonly turnover: number;
    /** One connection ends and another one is opened. */
    readonly connection: number;
    /** The store is killed and started again, or a worker is killed, in turn. */
    readonly interruption: number;
    /** The load pauses, the memory is measured, and the pace is set to half of the saturation of that time. */
    readonly sample: number;
  };
  /** Milliseconds for which the store is away. */
  readonly away: number;
  /** Milliseconds of the closed loop before everything else, in which the service compiles its code. */
  readonly warmUp: number;
  /** Milliseconds of the closed loop that finds the saturation. */
  readonly saturate: number;
}

/**
 * The memory of all processes of the service at a time in seconds, in bytes, while no call is in flight: heap and
 * buffers after a forced collection, and resident memory.
 */
export interface SoakSample {
  readonly at: number;
  readonly heap: number;
  readonly resident: number;
}

export interface SoakReport {
  readonly date: string;
  readonly machine: Machine;
  readonly setup: SoakSetup;
  readonly seconds: number;
  /** Calls per second of the open loops. */
  readonly paces: readonly number[];
  readonly calls: {
    readonly sent: number;
    readonly answered: number;
    readonly failed: number;
    readonly unanswered: number;
  };
  /** Different keys of each of the two rules. */
  readonly values: number;
  /** Answers without the expected parts. */
  readonly malformed: number;
  /** Values whose answers contradict each other or the count in the store. */
  readonly wrongCounts: number;
  readonly firstWrong: string | undefined;
  readonly failedInOutages: number;
  readonly failedOtherwise: number;
  readonly storeRestarts: number;
  readonly workersKilled: number;
  /**
   * When the store was away, until the service had reached it again, and when a worker was missing; seconds from the
   * beginning.
   */
  readonly outages: readonly (readonly [from: number, to: number])[];
  readonly reloads: number;
  /** The limits in the answers: those of both versions of the rules. */
  readonly limitsSeen: readonly number[];
  readonly generations: number;
  /** Connections that ended after their calls, and in whose place others were opened. */
  readonly connections: number;
  /** At the end, according to the service. */
  readonly openCalls: number;
  readonly latency: Latency;
  readonly samples: readonly SoakSample[];
  readonly heap: Trend;
  readonly resident: Trend;
}

/** A measurement at a time, in seconds. */
export type Point = readonly [seconds: number, value: number];

/**
 * The slope of the straight line with the least squared distance to the points, per second; 0 for fewer than two
 * points.
 */
export function slopeOf(points: readonly Point[]): number {
  const count = points.length;
  const meanTime = points.reduce((sum, [time]) => sum + time, 0) / count;
  const meanValue = points.reduce((sum, [, value]) => sum + value, 0) / count;
  const variance = points.reduce((sum, [time]) => sum + (time - meanTime) ** 2, 0);
  if (count < 2 || variance === 0) return 0;
  return points.reduce((sum, [time, value]) => sum + (time - meanTime) * (value - meanValue), 0) / variance;
}

export interface Trend {
  readonly median: number;
  /** The slope times the time between the first and the last point, as a share of the median. */
  readonly growth: number;
}

/**
 * The trend of all points but those of the first third, in which a service still compiles its code and fills its
 * caches.
 */
export function trendOf(points: readonly Point[]): Trend {
  const settled = points.slice(Math.floor(points.length / 3));
  const values = settled.map(([, value]) => value).toSorted((one, other) => one - other);
  const median = values[Math.floor(values.length / 2)] ?? NaN;
  const time = (settled.at(-1)?.[0] ?? 0) - (settled[0]?.[0] ?? 0);
  return { median, growth: (slopeOf(settled) * time) / median };
}

/** What the soak has to show, each with whether it does. */
export function verdictsOf(report: SoakReport): readonly (readonly [statement: string, holds: boolean])[] {
  const { calls, heap, resident } = report;
  return [
    ['no wrong count', report.wrongCounts === 0 && report.malformed === 0],
    ['no call failed otherwise', report.failedOtherwise === 0],
    ['every call was answered or failed', calls.unanswered === 0 && calls.sent === calls.answered + calls.failed],
    ['no open call is left', report.openCalls === 0],
    [`the heap is flat: it grew by at most ${FLAT.heap * 100} %`, heap.growth <= FLAT.heap],
    [`resident memory is flat: it grew by at most ${FLAT.resident * 100} %`, resident.growth <= FLAT.resident],
  ];
}

/**
 * The reports of a file, one for each setup; none when there is no such file.
 *
 * @throws Error when the file has something else
 */
export function readSoaks(file: string): readonly SoakReport[] {
  if (!existsSync(file)) return [];
  const reports: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (!Array.isArray(reports))
    throw new Error(`${file} is no list of soaks: remove it, or name another file with --out`);
  return reports as SoakReport[];
}

/** Adds a report to a file, in the place of the one of the same setup. Returns all reports as they are in the file. */
export function writeSoak(file: string, report: SoakReport): readonly SoakReport[] {
  const others = readSoaks(file).filter(({ setup }) => nameOf(setup) !== nameOf(report.setup));
  const all = [...others, report].toSorted((one, other) => orderOf(one) - orderOf(other));
  writeJson(file, all);
  return readSoaks(file);
}

/** First by the number of workers, then Redis before memory. */
function orderOf({ setup: { store, workers } }: SoakReport): number {
  return 2 * workers + (store === 'redis' ? 0 : 1);
}

const MEBIBYTE = 2 ** 20;

/** The results of soaks, for README.md: a column for each. */
export function soakSection(reports: readonly SoakReport[]): string {
  const columns = reports.map((report) => [...factsOf(report), ...resultsOf(report)]);
  const rows = columns[0]!.map(([name], row) => [name, ...columns.map((column) => column[row]![1])] as const);
  const table = markdownTable(['Soak', ...reports.map(({ setup }) => nameOf(setup))], rows);
  return `${machinesOf(reports)}\n\n${table}`;
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

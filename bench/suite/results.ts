import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Comparison } from './against';
import type { DecisionResult } from './measure/decisions';
import type { EventResult } from './measure/events';
import type { MemoryResult } from './measure/memory';
import type { Machine } from './processes/machine';

/** One run of the benchmark. */
export interface Results {
  /** The day of the run. */
  readonly date: string;
  readonly machine: Machine;
  /** Seconds of each measurement. */
  readonly seconds: number;
  /** Settings of the service in addition to those of the scenarios. */
  readonly settings: Readonly<Record<string, string>>;
  readonly decisions: readonly DecisionResult[];
  readonly memory: readonly MemoryResult[];
  readonly events: readonly EventResult[];
}

const FILE = 'bench.json';
const COMPARISON_FILE = 'against.json';

export function writeResults(folder: string, results: Results): void {
  write(folder, FILE, results);
}

export function writeComparison(folder: string, comparisons: readonly Comparison[]): void {
  write(folder, COMPARISON_FILE, comparisons);
}

export function readResults(folder: string): Results {
  return JSON.parse(readFileSync(join(folder, FILE), 'utf8')) as Results;
}

function write(folder: string, file: string, value: unknown): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, file), `${JSON.stringify(value, rounded, 2)}\n`);
}

/** More digits than these mean nothing. */
export function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value;
}

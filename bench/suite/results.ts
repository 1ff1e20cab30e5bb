import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { DecisionResult } from './measure/decisions';
import type { MemoryResult } from './measure/memory';
import type { Machine } from './processes/machine';
import type { Settings } from './scenarios/loads';

/** One run of the benchmark. */
export interface Results {
  /** The day of the run. */
  readonly date: string;
  readonly machine: Machine;
  /** Seconds of each measurement. */
  readonly seconds: number;
  /** Settings of the service in addition to those of the scenarios. */
  readonly settings: Settings;
  readonly decisions: readonly DecisionResult[];
  readonly memory: readonly MemoryResult[];
}

const FILE = 'bench.json';

export function writeResults(folder: string, results: Results): void {
  writeJson(join(folder, FILE), results);
}

export function readResults(folder: string): Results {
  return JSON.parse(readFileSync(join(folder, FILE), 'utf8')) as Results;
}

/** Writes a file of JSON with one line for each item of the lists in it, and of the value if that is a list. */
export function writeJson(file: string, value: object): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${Array.isArray(value) ? list(value) : fields(value)}\n`);
}

function fields(value: object): string {
  const lines = Object.entries(value).map(
    ([name, field]) =>
      `${JSON.stringify(name)}: ${Array.isArray(field) ? list(field) : JSON.stringify(field, rounded)}`,
  );
  return `{\n${lines.join(',\n')}\n}`;
}

function list(items: readonly unknown[]): string {
  return `[\n${items.map((item) => JSON.stringify(item, rounded)).join(',\n')}\n]`;
}

/** More digits than these mean nothing. */
function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value;
}

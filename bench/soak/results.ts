import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { rounded } from '../suite/results';
import { nameOf } from './setup';
import type { SoakReport } from './soak-report';

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
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(all, rounded, 2)}\n`);
  return readSoaks(file);
}

/** First by the number of workers, then Redis before memory. */
function orderOf({ setup: { store, workers } }: SoakReport): number {
  return 2 * workers + (store === 'redis' ? 0 : 1);
}

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { rounded } from '../suite/results';
import type { SoakReport } from './soak-report';

export function writeSoak(file: string, report: SoakReport): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(report, rounded, 2)}\n`);
}

/** Undefined when there is none. */
export function readSoak(file: string): SoakReport | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as SoakReport) : undefined;
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A row of the fault table in test/README.md. */
export interface FaultRow {
  /** A clause that completes “when …”. */
  readonly fault: string;
  /** The error codes that callers may get while the fault lasts, in addition to OK. */
  readonly callersSee: readonly string[];
  readonly recovery: string;
}

const README = join(__dirname, '../../README.md');

/** The rows under a heading of the README. */
export function faultTable(heading: string): readonly FaultRow[] {
  const [, section = ''] = readFileSync(README, 'utf8').split(`### ${heading}\n`);
  const rows = (section.split(/^#/m)[0] ?? '').split('\n').filter((line) => /^\| [^-]/.test(line));
  return rows.slice(1).map((line) => {
    const [fault = '', callersSee = '', recovery = ''] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    return { fault, callersSee: Array.from(callersSee.matchAll(/`(\w+)`/g), ([, code]) => code as string), recovery };
  });
}

/** Runs a test for each row; fails when a row has no test or a test no row, so that the table lists what is tested. */
export function faultTests(heading: string, tests: Readonly<Record<string, (row: FaultRow) => Promise<void>>>): void {
  const rows = faultTable(heading);
  it('has a test for every row of the table, and a row for every test', () => {
    expect(rows.map(({ fault }) => fault)).toEqual(Object.keys(tests));
  });
  for (const row of rows) {
    const test = tests[row.fault];
    if (test !== undefined) it(`counts correctly and recovers when ${row.fault}`, () => test(row));
  }
}

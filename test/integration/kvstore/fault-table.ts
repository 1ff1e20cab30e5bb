import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A row of the fault table in test/README.md. */
export interface FaultRow {
  readonly fault: string;
  /** The answers that callers may get while it lasts; the service's own codes, and OK. */
  readonly callersSee: readonly string[];
  readonly wellAgain: string;
}

const README = join(__dirname, '../../README.md');

/** The rows under a heading of the README. */
export function faultTable(heading: string): readonly FaultRow[] {
  const [, section = ''] = readFileSync(README, 'utf8').split(`### ${heading}\n`);
  const rows = (section.split(/^#/m)[0] ?? '').split('\n').filter((line) => /^\| [^-]/.test(line));
  return rows.slice(1).map((line) => {
    const [fault = '', callersSee = '', wellAgain = ''] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    return { fault, callersSee: Array.from(callersSee.matchAll(/`(\w+)`/g), ([, code]) => code as string), wellAgain };
  });
}

/** Runs a test for each row, and fails when a row has none or a test no row: the table says what is shown. */
export function faultTests(heading: string, tests: Readonly<Record<string, (row: FaultRow) => Promise<void>>>): void {
  const rows = faultTable(heading);
  it('has a test for every row of the table, and a row for every test', () => {
    expect(rows.map(({ fault }) => fault)).toEqual(Object.keys(tests));
  });
  for (const row of rows) {
    const test = tests[row.fault];
    // oxlint-disable-next-line jest/valid-title -- the table names the tests
    if (test !== undefined) it(row.fault, () => test(row));
  }
}

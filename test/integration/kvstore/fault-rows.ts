import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A row of the fault tables in test/README.md. */
export interface FaultRow {
  /** A clause that completes “when …”. */
  readonly fault: string;
  /** The error codes that callers may get while the fault lasts, in addition to OK. */
  readonly callersSee: readonly string[];
}

/** The rows that the fast suite plays: one fault of each class. The long suite plays all others. */
const FAST: Readonly<Record<string, readonly string[]>> = {
  'Single server: connections': ['the server hangs', 'a connection is cut in the middle of a reply'],
  'Single server: error replies': ['the server is out of memory', 'scripts are forbidden'],
  memcached: ['the server crashes', 'the server sends replies without requests', 'the server sends garbage'],
};

const README = join(__dirname, '../../README.md');

/** The rows under a heading of the README. */
function faultTable(heading: string): readonly FaultRow[] {
  const [, section = ''] = readFileSync(README, 'utf8').split(`### ${heading}\n`);
  const rows = (section.split(/^#/m)[0] ?? '').split('\n').filter((line) => /^\| [^-]/.test(line));
  return rows.slice(1).map((line) => {
    const [fault = '', callersSee = ''] = line.split('|').slice(1, 3);
    return { fault: fault.trim(), callersSee: Array.from(callersSee.matchAll(/`(\w+)`/g), ([, code]) => code!) };
  });
}

export interface FaultTests<C> {
  readonly suite: 'fast' | 'long';
  /** By the fault. */
  readonly courses: Readonly<Record<string, C>>;
  readonly play: (course: C, row: FaultRow) => Promise<void>;
}

/**
 * Runs a test for each row of the suite. The fast suite fails when a row has no test or a test no row, so that the
 * tables list what is tested; so does the long suite for a table of which the fast one plays nothing.
 */
export function faultTests<C>(heading: string, { suite, courses, play }: FaultTests<C>): void {
  const rows = faultTable(heading);
  const fast = FAST[heading] ?? [];
  if (suite === 'fast' || fast.length === 0) {
    it(`has a test for every row of the table “${heading}”, and a row for every test`, () => {
      expect(rows.map(({ fault }) => fault)).toEqual(Object.keys(courses));
      expect(Object.keys(courses)).toEqual(expect.arrayContaining([...fast]));
    });
  }
  for (const row of rows.filter(({ fault }) => fast.includes(fault) === (suite === 'fast'))) {
    it(`counts correctly and recovers when ${row.fault}`, () => play(courses[row.fault]!, row));
  }
}

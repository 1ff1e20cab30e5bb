import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A row of a table of attacks in test/README.md. */
export interface AttackRow {
  readonly attack: string;
  /** What the attacker may get, see `Answers`. */
  readonly answers: readonly string[];
  /** The statistics that count the attack. */
  readonly countedAs: readonly string[];
  /** The resident memory of the service in MiB, below which it stays. */
  readonly memory: number;
}

const README = join(__dirname, '../README.md');

/** The tables of attacks by their headings. */
export function attackTables(): ReadonlyMap<string, readonly AttackRow[]> {
  const [, section = ''] = readFileSync(README, 'utf8').split('\n## Attacks\n');
  const [, ...tables] = (section.split(/^## /m)[0] ?? '').split(/^### /m);
  return new Map(tables.map((table) => [table.slice(0, table.indexOf('\n')), rowsOf(table)]));
}

function rowsOf(table: string): readonly AttackRow[] {
  const lines = table.split('\n').filter((line) => /^\| [^-]/.test(line));
  return lines.slice(1).map((line) => {
    const [attack = '', answers = '', countedAs = '', memory = ''] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    return { attack, answers: codesIn(answers), countedAs: codesIn(countedAs), memory: Number.parseInt(memory, 10) };
  });
}

function codesIn(cell: string): readonly string[] {
  return Array.from(cell.matchAll(/`([^`]+)`/g), ([, code]) => code as string);
}

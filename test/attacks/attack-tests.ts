import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { peakMemory } from '../support/processes/process-memory';
import { Answers, type Attack } from './attack';
import { ATTACKS } from './attacks';
import { startTarget } from './start-target';
import { type ClientTarget, WellBehavedClient } from './well-behaved-client';

/** Milliseconds. An attack takes seconds; on a busy machine, minutes. */
const LONGEST_ATTACK = 240_000;

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

/** The tables of attacks in test/README.md by their headings. */
export function attackTables(): ReadonlyMap<string, readonly AttackRow[]> {
  const [, section = ''] = readFileSync(join(__dirname, '../README.md'), 'utf8').split('\n## Attacks\n');
  const [, ...tables] = (section.split(/^## /m)[0] ?? '').split(/^### /m);
  return new Map(tables.map((table) => [table.slice(0, table.indexOf('\n')), rowsOf(table)]));
}

function rowsOf(table: string): readonly AttackRow[] {
  const lines = table.split('\n').filter((line) => /^\| [^-]/.test(line));
  return lines.slice(1).map((line) => {
    const [, attack = '', answers = '', countedAs = '', memory = ''] = line.split('|').map((cell) => cell.trim());
    return { attack, answers: codesIn(answers), countedAs: codesIn(countedAs), memory: Number.parseInt(memory, 10) };
  });
}

function codesIn(cell: string): readonly string[] {
  return Array.from(cell.matchAll(/`([^`]+)`/g), ([, code]) => code as string);
}

/** Rows that `npm test` plays, one of each class; the others are in the long suite. */
const FAST = [
  '5,000 calls with damaged messages',
  '10 connections, each with 20,000 calls that are reset at once',
  '300 connections to the debug listener that send no request',
];

/** Tests the attacks of a suite, each against its row in test/README.md. */
export function attackTests(suite: 'fast' | 'long'): void {
  jest.setTimeout(2 * LONGEST_ATTACK);
  const rows = [...attackTables()].flatMap(([heading, table]) => table.map((row) => ({ ...row, heading })));
  const ofSuite = rows.filter(({ attack }) => FAST.includes(attack) === (suite === 'fast'));
  it.each(ofSuite)('$heading, $attack: does not affect a well-behaved client', async (row) => {
    await expectNoEffect(ATTACKS[row.heading]![row.attack]!, row);
  });
}

/** Attacks a service, and expects what its row says, next to a client to which nothing happens. */
export async function expectNoEffect(attack: Attack, row: Omit<AttackRow, 'attack'>): Promise<void> {
  await using attacked = await startTarget(attack);
  const { weir, target } = attacked;
  const before = await weir.statistics();
  using client = await WellBehavedClient.connect(attacked.client);
  client.start();
  await weir.until('the well-behaved client to be served', () => client.answered > 20);
  const answers = new Answers();
  await withinTime(attack.run(target, answers));
  const { answered } = client;
  await weir.until('the well-behaved client to be served afterwards', () => client.answered > answered + 20);
  await expectServed(client);

  expect(answers.kinds.filter((answer) => !row.answers.includes(answer))).toEqual([]);
  expect(answers.kinds).toContain(row.answers[0]);
  for (const name of row.countedAs) {
    const old = before.get(name) ?? 0;
    await weir.until(`${name} to be counted`, async () => ((await weir.statistics()).get(name) ?? 0) > old);
  }
  expect((await weir.statistics()).size).toBeLessThan(before.size + 1_000);
  expect(peakMemory(target.pid)).toBeLessThan(row.memory);
  await expectNextServed(attacked.client);
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
}

/** Fails when an attack does not end: then the service no longer responds to it. */
async function withinTime(attack: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the attacker still waits for answers')), LONGEST_ATTACK);
  });
  try {
    await Promise.race([attack, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function expectServed(client: WellBehavedClient): Promise<void> {
  const { sent, answered, wrong, errors } = await client.stop();
  expect({ wrong, errors, answered }).toEqual({ wrong: [], errors: [], answered: sent });
  expect(sent).toBeGreaterThan(0);
}

/** Expects that a client that connects now is served, too; it cannot know the counts. */
async function expectNextServed(at: ClientTarget): Promise<void> {
  using client = await WellBehavedClient.connect(at);
  client.start();
  const { sent, answered, errors } = await client.stop();
  expect({ errors, answered }).toEqual({ errors: [], answered: sent });
  expect(sent).toBeGreaterThan(0);
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { MORE_MEMORY, peakMemory } from '../support/processes/process-memory';
import type { Answers, Attack } from './peers';
import { CONNECTIONS } from './programs/connections';
import { HTTP2_FRAMES } from './programs/http2-frames';
import { HTTP_REQUESTS } from './programs/http-requests';
import { LARGE_MESSAGES, OTHER_MESSAGES } from './programs/messages';
import { RESERVATIONS } from './programs/reservations';
import { FILES, MANAGEMENT_SERVER, PROCESS } from './programs/surroundings';
import { INSTANCES } from './programs/instances';
import { startTarget } from './start-target';
import { WellBehavedClient } from './well-behaved-client';

/** Milliseconds. An attack takes seconds; on a busy machine, minutes. */
const LONGEST_ATTACK = 240_000;

/** All attacks: by the heading of their table in test/README.md, and by their row. */
export const ATTACKS: Readonly<Record<string, Readonly<Record<string, Attack>>>> = {
  'Large messages': LARGE_MESSAGES,
  'Other messages': OTHER_MESSAGES,
  'HTTP/2 frames': HTTP2_FRAMES,
  'HTTP/1.1 requests': HTTP_REQUESTS,
  Reservations: RESERVATIONS,
  'More connections than file descriptors': CONNECTIONS,
  Files: FILES,
  'A management server that sends without pause': MANAGEMENT_SERVER,
  'Instances that answer with too much': INSTANCES,
  'Outputs, signals and clock': PROCESS,
};

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
async function expectNoEffect(attack: Attack, row: Omit<AttackRow, 'attack'>): Promise<void> {
  await using target = await startTarget(attack);
  const { weir } = target;
  const before = await weir.statistics();
  using client = await WellBehavedClient.connect(target);
  await weir.until('the well-behaved client to be served', () => client.answered > 20);
  const answers: Answers = new Set();
  // Otherwise the service no longer responds to it.
  const late = pause(LONGEST_ATTACK, 'the attacker still waits for answers', { ref: false });
  expect(await Promise.race([attack.run(target, answers), late])).toBeUndefined();
  const { answered } = client;
  await weir.until('the well-behaved client to be served afterwards', () => client.answered > answered + 20);
  await client.stop();
  expect(client).toMatchObject({ wrong: [], errors: [], answered: client.sent });

  expect([...answers].filter((answer) => !row.answers.includes(answer))).toEqual([]);
  expect([...answers]).toContain(row.answers[0]);
  for (const name of row.countedAs) {
    const old = before.get(name) ?? 0;
    await weir.until(`${name} to be counted`, async () => ((await weir.statistics()).get(name) ?? 0) > old);
  }
  // Most are of 256 servers of a store, each with four.
  expect((await weir.statistics()).size).toBeLessThan(before.size + 1_100);
  expect(peakMemory(weir.pid!)).toBeLessThan(MORE_MEMORY * row.memory);
  // It cannot know the counts.
  using next = await WellBehavedClient.connect(target);
  await next.stop();
  expect(next).toMatchObject({ errors: [], answered: next.sent });
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
}

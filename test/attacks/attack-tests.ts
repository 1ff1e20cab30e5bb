import { peakMemory } from '../support/processes/process-memory';
import type { WeirProcess } from '../support/processes/weir-process';
import { Answers, type Attack } from './attack';
import { type AttackRow, attackTables } from './attack-tables';
import { ATTACKS } from './attacks';
import { startTarget } from './start-target';
import { type ClientTarget, type Experience, WellBehavedClient } from './well-behaved-client';

/** Milliseconds. An attack takes seconds; on a busy machine, minutes. */
const LONGEST_ATTACK = 240_000;

/** Tests the attacks under a heading of test/README.md, each against the row of its table. */
export function attackTests(heading: string): void {
  jest.setTimeout(2 * LONGEST_ATTACK);
  const attacks = ATTACKS[heading] ?? {};
  const rows = attackTables().get(heading) ?? [];

  describe(`attacks: ${heading}`, () => {
    it('have a row for every test, and a test for every row', () => {
      expect(rows).not.toEqual([]);
      expect(rows.map(({ attack }) => attack)).toEqual(Object.keys(attacks));
    });

    it.each(rows.map((row) => [row.attack, row] as const))(
      'do not affect a well-behaved client: %s',
      async (name, row) => {
        await expectNoEffect(attacks[name]!, row);
      },
    );
  });
}

async function expectNoEffect(attack: Attack, row: AttackRow): Promise<void> {
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

  expectServed(await client.stop());
  expect(answers.kinds.filter((answer) => !row.answers.includes(answer))).toEqual([]);
  expect(answers.kinds).toContain(row.answers[0]);
  for (const name of row.countedAs) await weir.until(`${name} to be counted`, () => hasGrown(weir, name, before));
  expect(peakMemory(target.pid)).toBeLessThan(row.memory);
  await expectNextClientServed(attacked.client);
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

function expectServed({ sent, answered, wrong, errors }: Experience): void {
  expect({ wrong, errors, answered }).toEqual({ wrong: [], errors: [], answered: sent });
}

/** Expects that a client that connects now is served, too. */
async function expectNextClientServed(at: ClientTarget): Promise<void> {
  using client = await WellBehavedClient.connect(at);
  client.start();
  await new Promise((resolve) => setTimeout(resolve, 50));
  const { sent, answered, errors } = await client.stop();
  expect({ errors, answered }).toEqual({ errors: [], answered: sent });
}

async function hasGrown(weir: WeirProcess, name: string, before: ReadonlyMap<string, number>): Promise<boolean> {
  return ((await weir.statistics()).get(name) ?? 0) > (before.get(name) ?? 0);
}

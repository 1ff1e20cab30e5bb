// Repeats one attack until its process is killed: node --require …/typescript-hook.cjs attacker.ts HEADING ROW TARGET
import { ATTACKS } from '../../test/attacks/attacks';
import { Answers, type Target } from '../../test/attacks/attack';

async function main(): Promise<void> {
  const [heading = '', row = '', target = ''] = process.argv.slice(2);
  const attack = ATTACKS[heading]?.[row];
  if (attack === undefined) throw new Error(`no such attack: ${heading}, ${row}`);
  for (;;) {
    const answers = new Answers();
    await attack.run(JSON.parse(target) as Target, answers);
    process.stdout.write(`${JSON.stringify([...answers.entries()])}\n`);
  }
}

void main();

// What a well-behaved client sees during each attack: see README.md. Arguments: words that the rows to run contain.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ATTACKS } from '../../test/attacks/attacks';
import { type Attack, Answers, type Target } from '../../test/attacks/attack';
import { startTarget } from '../../test/attacks/start-target';
import { peakMemory } from '../../test/support/processes/process-memory';
import { type Experience, WellBehavedClient } from '../../test/attacks/well-behaved-client';

/** Milliseconds with and without an attack. */
const IDLE = 3_000;
const ATTACK = 5_000;

const HOOK = join(__dirname, '../../test/support/processes/typescript-hook.cjs');
const words = process.argv.slice(2);

/** Attacks from a process of its own until the time is over. */
async function attack(heading: string, row: string, target: Target): Promise<Answers> {
  const answers = new Answers();
  const args = ['--require', HOOK, join(__dirname, 'attacker.ts'), heading, row, JSON.stringify(target)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  createInterface(child.stdout).on('line', (line) => {
    for (const [answer, count] of JSON.parse(line) as [string, number][]) answers.add(answer, count);
  });
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, ATTACK))]);
  child.kill('SIGKILL');
  await ended;
  return answers;
}

function milliseconds(latencies: readonly number[]): string {
  function at(share: number) {
    const value = latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))];
    return value === undefined ? '-' : value < 10 ? value.toFixed(1) : value.toFixed(0);
  }
  return `p50 ${at(0.5)}, p99 ${at(0.99)}, worst ${at(1)} ms`;
}

function summary({ sent, answered, wrong, errors, latencies }: Experience): string {
  const first = [...wrong, ...errors][0];
  const details = first === undefined ? '' : ` (first: ${first})`;
  return `${milliseconds(latencies)}; ${answered} of ${sent} answered, ${wrong.length} wrong, ${errors.length} errors${details}`;
}

async function measure(heading: string, row: string, kind: Attack): Promise<void> {
  await using attacked = await startTarget(kind);
  const { weir, target } = attacked;
  using client = await WellBehavedClient.connect(attacked.client);
  client.start();
  await new Promise((resolve) => setTimeout(resolve, IDLE));
  const idle = await client.stop();
  let peak = 0;
  function readPeak(): void {
    try {
      peak = peakMemory(target.pid);
    } catch {
      // The service has ended; what it had last counts.
    }
  }
  readPeak();
  const before = peak;
  const reading = setInterval(readPeak, 50);
  client.start();
  const answers = await attack(heading, row, target);
  const during = await client.stop();
  readPeak();
  clearInterval(reading);
  console.log(`${heading}: ${row}
  idle:   ${summary(idle)}; ${before.toFixed(0)} MiB
  attack: ${summary(during)}; ${peak.toFixed(0)} MiB${weir.isRunning ? '' : '; THE SERVICE HAS ENDED'}
  the attacker received: ${answers.toString()}`);
}

async function main(): Promise<void> {
  for (const [heading, attacks] of Object.entries(ATTACKS)) {
    for (const [row, kind] of Object.entries(attacks)) {
      if (words.every((word) => `${heading}: ${row}`.includes(word))) await measure(heading, row, kind);
    }
  }
}

void main();

// npm run bench:soak-service: see README.md.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { renderSections } from '../suite/report/pages';
import {
  type SoakOptions,
  type SoakSample,
  type SoakSetup,
  readSoaks,
  soakSection,
  verdictsOf,
  writeSoak,
} from './report';
import { soakService } from './soak-service';

const ROOT = join(__dirname, '../..');
const RESULT = 'bench/results/soak.json';
const MEBIBYTE = 2 ** 20;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    store: { type: 'string', default: 'redis' },
    workers: { type: 'string', default: '1' },
    out: { type: 'string' },
    publish: { type: 'boolean', default: false },
  },
});

/** Intervals as for ten minutes, but shorter in a shorter soak, so that everything happens several times. */
function optionsFor(seconds: number): SoakOptions {
  const scale = Math.min(1, seconds / 600);
  return {
    seconds,
    values: 2_000,
    every: {
      reload: Math.max(0.5, 10 * scale),
      turnover: Math.max(0.5, 10 * scale),
      connection: Math.max(0.2, scale),
      interruption: Math.max(2, 60 * scale),
      sample: Math.max(0.5, 10 * scale),
    },
    away: 1_000 * Math.max(0.2, scale),
    warmUp: 10_000 * scale,
    saturate: 1_000 * Math.max(0.2, scale),
  };
}

function show({ at, heap, resident }: SoakSample): void {
  say(
    `${at.toFixed(0)} s: ${(heap / MEBIBYTE).toFixed(1)} MiB after collection, ${(resident / MEBIBYTE).toFixed(0)} MiB resident`,
  );
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function setupOf({ store, workers }: { readonly store: string; readonly workers: string }): SoakSetup {
  if (store !== 'redis' && store !== 'memory') throw new Error(`--store: ${store} is neither redis nor memory`);
  if (!/^[1-9]\d*$/.test(workers)) throw new Error(`--workers: ${workers} is not a positive whole number`);
  return { store, workers: Number(workers) };
}

async function main(): Promise<void> {
  const setup = setupOf(values);
  if (!(Number(values.seconds) > 0)) throw new Error(`--seconds: ${values.seconds} is not a positive number`);
  const file = values.publish ? join(ROOT, RESULT) : (values.out ?? join(ROOT, '.bench/soak.json'));
  // A file that the result cannot be added to is reported before the soak, not after it.
  readSoaks(file);
  const report = await soakService(setup, optionsFor(Number(values.seconds)), show);
  const all = writeSoak(file, report);
  say(`${soakSection([report])}\nwritten to ${file}`);
  if (report.firstWrong !== undefined) say(`first contradiction: ${report.firstWrong}`);
  // As written: the numbers in the file are rounded.
  if (values.publish) renderSections(join(__dirname, 'README.md'), { soak: soakSection(all) });
  process.exitCode = verdictsOf(report).every(([, holds]) => holds) ? 0 : 1;
}

void main().then(() => process.exit());

// npm run bench:reload: see README.md.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { TemporaryFolder } from '../../test/support/data/temporary-folder';
import { FILL_TIMEOUT, pace, sleep, startLoad } from '../suite/measure/decisions';
import type { Phase } from '../suite/measure/phase';
import { Service } from '../suite/processes/service';
import { startStore } from '../suite/processes/stores';
import { LOADS } from '../suite/scenarios/loads';

const { values } = parseArgs({
  options: {
    rules: { type: 'string', default: '10000' },
    rate: { type: 'string', default: '10000' },
    reloads: { type: 'string', default: '4' },
    /** Seconds for one reload and what follows it. */
    span: { type: 'string', default: '3' },
    dist: { type: 'string' },
  },
});
/** In milliseconds. */
const SPAN = Number(values.span) * 1_000;

/** A line of `record-stops.cjs`. */
interface Stops {
  readonly at: number;
  readonly stop: number;
  readonly scavenge: number;
  readonly collection: number;
  readonly resident: number;
}

/** A file of rules that differ from those of another version. */
function manyRules(count: number, version: number): string {
  const rules = Array.from({ length: count }, (_, index) => {
    const limit = `      unit: minute\n      requests_per_unit: ${100 + version}\n`;
    return `  - key: user\n    value: u${index}\n    rate_limit:\n${limit}`;
  });
  return `domain: many\ndescriptors:\n${rules.join('')}`;
}

function rowOf(title: string, stops: readonly Stops[], { latency, calls }: Phase): string {
  function most(field: keyof Stops): number {
    return Math.max(0, ...stops.map((each) => each[field]));
  }
  const numbers = [most('stop'), most('scavenge'), most('collection'), latency.p99, latency.p999];
  const shown = numbers.map((number) => number.toFixed(1)).join(' | ');
  return `| ${title} | ${shown} | ${(most('resident') / 2 ** 20).toFixed(0)} | ${calls.failed} |\n`;
}

async function main(): Promise<void> {
  const [count, rate, reloads] = [values.rules, values.rate, values.reloads].map(Number) as [number, number, number];
  using folder = new TemporaryFolder();
  const file = folder.at('stops.jsonl');
  await using store = await startStore('memory');
  const load = LOADS['10k-keys'];
  const env = {
    ...store.env,
    STOPS_FILE: file,
    NODE_OPTIONS: `--require ${join(__dirname, '../suite/measure/record-stops.cjs')}`,
  };
  await using service = await Service.start(load, env, values.dist === undefined ? {} : { dist: values.dist });
  await using generator = await startLoad(load, [service]);
  await generator.fill(24_000, FILL_TIMEOUT);
  const measured = { generator, expected: load.expected, servicePids: [service.pid], store };
  const durations = { settle: 1_000, measure: reloads * SPAN, warmUp: 0, warmUpCalls: 0 };
  async function measure(title: string, change: (version: number) => Promise<void>): Promise<string> {
    const began = Date.now() + durations.settle;
    const phase = pace(measured, rate, durations);
    await sleep(durations.settle);
    for (let version = 0; version < reloads; version += 1) {
      await change(version);
      await sleep(SPAN);
    }
    const done = await phase;
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    const stops = lines.map((line) => JSON.parse(line) as Stops).filter(({ at }) => at >= began);
    return rowOf(title, stops, done);
  }
  await service.rules.write('many.yaml', manyRules(count, 0));
  await sleep(SPAN);
  process.stdout.write('| ms | longest stop | scavenge | other collection | p99 | p99.9 | resident MiB | failed |\n');
  process.stdout.write(`|---|${'---:|'.repeat(7)}\n`);
  process.stdout.write(await measure('without a reload', () => Promise.resolve()));
  const title = `${reloads} reloads of ${count} rules`;
  process.stdout.write(
    await measure(title, (version) => service.rules.write('many.yaml', manyRules(count, version + 1))),
  );
}

void main().then(() => process.exit());

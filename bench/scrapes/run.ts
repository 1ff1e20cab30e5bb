// npm run bench:scrapes: see README.md.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { TemporaryFolder } from '../../test/support/data/temporary-folder';
import { freePorts } from '../../test/support/processes/free-ports';
import { FILL_TIMEOUT, pace, sleep, startLoad } from '../suite/measure/decisions';
import { Service } from '../suite/processes/service';
import { startStore } from '../suite/processes/stores';
import { LOADS, type Load, RULE_FILE, rulesWith } from '../suite/scenarios/loads';

const { values } = parseArgs({
  options: {
    keys: { type: 'string', default: '300000' },
    rate: { type: 'string', default: '2000' },
    /** Seconds of each measurement. */
    span: { type: 'string', default: '12' },
    workers: { type: 'string', default: '1' },
    dist: { type: 'string' },
  },
});
const [KEYS, RATE, SPAN] = [values.keys, values.rate, values.span].map(Number) as [number, number, number];
const NO_WARM_UP = { settle: 1_000, measure: SPAN * 1_000, warmUp: 0, warmUpCalls: 0 };

/** A line of `record-stops.cjs`. */
interface Stops {
  readonly at: number;
  readonly stop: number;
  readonly resident: number;
}

/** How long it takes to read a page, in seconds, and its size in MB. */
async function read(url: string): Promise<string> {
  const began = performance.now();
  let bytes = 0;
  const { body } = await fetch(url, { headers: { 'accept-encoding': 'identity' } });
  for await (const chunk of body ?? []) bytes += (chunk as Uint8Array).length;
  return `${((performance.now() - began) / 1_000).toFixed(1)} s, ${(bytes / 1e6).toFixed(0)} MB`;
}

async function main(): Promise<void> {
  using folder = new TemporaryFolder();
  const file = folder.at('stops.jsonl');
  const daemon = createSocket('udp4').bind(0, '127.0.0.1');
  await once(daemon, 'listening');
  await using store = await startStore('memory');
  const [metricsPort] = await freePorts(1);
  const load: Load = { ...LOADS['10k-keys'], title: `${KEYS} keys`, values: KEYS };
  const env = {
    ...store.env,
    STOPS_FILE: file,
    NODE_OPTIONS: `--require ${join(__dirname, '../suite/measure/record-stops.cjs')}`,
    DISABLE_STATS: 'false',
    STATS_MAX_RUNTIME_KEYS: String(KEYS),
    STATS_FLUSH_INTERVAL: '5s',
    USE_PULLMETRICS: 'true',
    PULLMETRICS_ADDR: `127.0.0.1:${metricsPort}`,
    USE_TAGGEDSTATS: 'true',
    PUSHSTATS_HOST: '127.0.0.1',
    PUSHSTATS_PORT: String(daemon.address().port),
    WORKERS: values.workers,
  };
  await using service = await Service.start(load, env, values.dist === undefined ? {} : { dist: values.dist });
  const rules = rulesWith().replace('- key: user\n', '- key: user\n    detailed_metric: true\n');
  await service.rules.write(RULE_FILE, rules);
  await service.weir.until('the rules are loaded', async () =>
    (await service.weir.debug('/rlconfig')).includes('user'),
  );
  await sleep(2_000);
  await using generator = await startLoad(load, [service]);
  const measured = { generator, expected: load.expected, servicePids: [service.pid], store };
  let atRest = 0;
  let calm = 0;
  async function measure(title: string, disturb: () => Promise<string>): Promise<void> {
    const began = Date.now() + NO_WARM_UP.settle;
    const phase = pace(measured, RATE, NO_WARM_UP);
    await sleep(NO_WARM_UP.settle);
    const [taken, { latency }] = await Promise.all([disturb(), phase]);
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    const stops = lines.map((line) => JSON.parse(line) as Stops).filter(({ at }) => at >= began);
    const resident = Math.max(...stops.map((each) => each.resident)) / 2 ** 20;
    const stop = Math.max(...stops.map((each) => each.stop));
    if (atRest === 0) [atRest, calm] = [resident, latency.p99];
    const ratio = (resident / atRest).toFixed(2);
    const times = [latency.p99, latency.p99 - calm, stop].map((each) => each.toFixed(1)).join(' | ');
    process.stdout.write(`| ${title} | ${taken} | ${times} | ${resident.toFixed(0)} | ${ratio} |\n`);
  }
  process.stdout.write('| | page | p99, ms | more than calm | longest stop | resident MiB | times that at rest |\n');
  process.stdout.write('|---|---|---:|---:|---:|---:|---:|\n');
  // What the filling has left is collected, and flushed for the first time, by then.
  await generator.fill(10_000, FILL_TIMEOUT);
  await sleep(10_000);
  await measure('at rest', () => Promise.resolve(''));
  const metrics = `http://127.0.0.1:${metricsPort}/metrics`;
  await measure('first scrape', () => read(metrics));
  await measure('second scrape', () => read(metrics));
  await measure('/stats', () => read(`http://127.0.0.1:${service.weir.ports.debug}/stats`));
  daemon.close();
}

void main().then(() => process.exit());

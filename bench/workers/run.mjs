// Compares the CPU time of a decision in an instance with one process and in one with several. See README.md.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startRedis } from '../kvstore/redis.mjs';
import { CLOSED_LOOPS, CONNECTIONS, closedLoop, say } from '../service/counting-load.mjs';
import { startInstance, storeSettings } from './instance.mjs';

const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
    seconds: { type: 'string', default: '3' },
    slices: { type: 'string', default: '5' },
    stores: { type: 'string', default: 'redis,memory' },
    workers: { type: 'string', default: '2' },
  },
});
const milliseconds = Number(options.seconds) * 1_000;

function median(numbers) {
  const sorted = numbers.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}

function described(costs, baseline) {
  const ratios = costs.map((cost, slice) => cost / baseline[slice]);
  const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  return `${median(costs).toFixed(2)} µs, ratio ${median(ratios).toFixed(2)} (${range})`;
}

/** The loads are run on both instances in turn, so that what else the machine does concerns both. */
async function compare(name, redis, settings) {
  const [single, several] = await Promise.all(
    ['1', options.workers].map((workers) => startInstance(options.dist, { WORKERS: workers, ...settings })),
  );
  const runs = [
    { server: single, connections: CONNECTIONS },
    { server: several, connections: CONNECTIONS },
    { server: several, connections: CONNECTIONS * Number(options.workers) },
  ];
  for (const [load, bodies] of Object.entries(CLOSED_LOOPS)) {
    const costs = runs.map(() => []);
    for (let slice = 0; slice < Number(options.slices); slice += 1) {
      for (const [index, { server, connections }] of runs.entries()) {
        const { cpu } = await closedLoop({ server, store: redis, milliseconds }, bodies, connections);
        costs[index].push(cpu);
      }
    }
    say(`${name}, ${load}: one process ${median(costs[0]).toFixed(2)} µs`);
    say(`  ${options.workers} workers, the same load: ${described(costs[1], costs[0])}`);
    say(`  ${options.workers} workers, the same load for each worker: ${described(costs[2], costs[0])}`);
  }
  single.stop();
  several.stop();
}

const redis = await startRedis();
for (const store of options.stores.split(',')) {
  await compare(store, redis, storeSettings(store === 'memory' ? undefined : redis));
}
await redis.stop();
process.exit(0);

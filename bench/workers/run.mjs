// Compares the CPU time of a decision in one process, in an instance with several workers and in several services. See README.md.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startRedis } from '../kvstore/redis.mjs';
import { CLOSED_LOOPS, CONNECTIONS, closedLoop, say } from '../service/counting-load.mjs';
import { median } from '../service/measurements.mjs';
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
const workers = Number(options.workers);

function described(costs, baseline) {
  const ratios = costs.map((cost, slice) => cost / baseline[slice]);
  const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  return `${median(costs).toFixed(2)} µs, ratio ${median(ratios).toFixed(2)} (${range})`;
}

/** The CPU time of a decision in µs, over all these servers. Each gets an equal part of the connections. */
async function costOf(servers, { bodies, connections, store }) {
  const results = await Promise.all(
    servers.map((server) => closedLoop({ server, store, milliseconds }, bodies, connections / servers.length)),
  );
  const perSecond = results.reduce((sum, result) => sum + result.perSecond, 0);
  return results.reduce((sum, { cpu, perSecond: share }) => sum + (cpu * share) / perSecond, 0);
}

/** The loads are run on all instances in turn, so that what else the machine does concerns each. */
async function compare(name, store, settings) {
  const [several, ...singles] = await Promise.all(
    [workers, ...Array.from({ length: workers }, () => 1)].map((count) =>
      startInstance(options.dist, { WORKERS: String(count), ...settings }),
    ),
  );
  const runs = [
    { servers: singles.slice(0, 1), connections: CONNECTIONS },
    { servers: [several], connections: CONNECTIONS },
    { servers: singles, connections: CONNECTIONS },
    { servers: [several], connections: CONNECTIONS * workers },
    { servers: singles, connections: CONNECTIONS * workers },
  ];
  for (const [load, bodies] of Object.entries(CLOSED_LOOPS)) {
    const costs = runs.map(() => []);
    for (let slice = 0; slice < Number(options.slices); slice += 1) {
      for (const [index, { servers, connections }] of runs.entries()) {
        costs[index].push(await costOf(servers, { bodies, connections, store }));
      }
    }
    const [single, ...others] = costs;
    const [sameLoad, sameLoadApart, loadForEach, loadForEachApart] = others.map((cost) => described(cost, single));
    say(`${name}, ${load}: one process ${median(single).toFixed(2)} µs`);
    say(`  the same load: ${workers} workers ${sameLoad}; ${workers} services ${sameLoadApart}`);
    say(`  the same load for each: ${workers} workers ${loadForEach}; ${workers} services ${loadForEachApart}`);
  }
  for (const server of [several, ...singles]) server.stop();
}

const redis = await startRedis();
for (const store of options.stores.split(',')) {
  await compare(store, redis, storeSettings(store === 'memory' ? undefined : redis));
}
await redis.stop();
process.exit(0);

// Compares the cost of a decision counted in Redis: a common implementation against weir. See README.md.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { MANY, compare, measure, measureLoads, say, startServer } from '../service/counting-load.mjs';
import { startRedis } from './redis.mjs';

const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
    seconds: { type: 'string', default: '3' },
    servers: { type: 'string', default: 'baseline,weir' },
  },
});
const milliseconds = Number(options.seconds) * 1_000;

function start(kind, redis, keys = 0) {
  const module = new URL(`servers/${kind}.mjs`, import.meta.url);
  return startServer(module, { dist: options.dist, redisPort: redis.port, keys });
}

function show({ cpu, storeCpu, commands, perSecond }) {
  const costs = `${cpu.toFixed(2)} µs, Redis ${storeCpu.toFixed(2)} µs, ${commands.toFixed(1)} commands per 1,000`;
  return `${costs} (${Math.round(perSecond)}/s)`;
}

/** The decision path alone: calls made within the process. */
async function withoutServer(keys) {
  const store = await startRedis();
  const server = await start('path', store, keys);
  let decisions = 0;
  async function usage() {
    const result = await server.usage();
    ({ decisions } = result);
    return result;
  }
  const result = await measure({ server: { usage }, store, milliseconds }, () => decisions);
  server.stop();
  await store.stop();
  return result;
}

const results = new Map();
for (const kind of options.servers.split(',')) {
  const store = await startRedis();
  const server = await start(kind, store);
  results.set(kind, await measureLoads({ server, store, milliseconds }, { name: kind, show }));
  server.stop();
  await store.stop();
}

const [baseline, weir] = [results.get('baseline'), results.get('weir')];
if (baseline !== undefined && weir !== undefined) {
  compare(baseline, weir, [
    ['CPU', 'cpu'],
    ['Redis CPU', 'storeCpu'],
    ['commands', 'commands'],
  ]);
}
say(`decision path without a server: a hot key: ${show(await withoutServer(1))}`);
say(`decision path without a server: ${MANY} keys: ${show(await withoutServer(MANY))}`);
process.exit(0);

// Compares the cost of a decision counted in memcached: a server that uses memjs directly against weir. See README.md.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { compare, measureLoads, startServer } from '../service/counting-load.mjs';
import { startMemcached } from './memcached.mjs';

const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
    seconds: { type: 'string', default: '3' },
    servers: { type: 'string', default: 'baseline,weir' },
  },
});
const milliseconds = Number(options.seconds) * 1_000;

function show({ cpu, storeCpu, perSecond }) {
  return `${cpu.toFixed(2)} µs, memcached ${storeCpu.toFixed(2)} µs (${Math.round(perSecond)}/s)`;
}

const results = new Map();
for (const kind of options.servers.split(',')) {
  const store = await startMemcached();
  const module = new URL(`servers/${kind}.mjs`, import.meta.url);
  const server = await startServer(module, { dist: options.dist, memcachedPort: store.port });
  results.set(kind, await measureLoads({ server, store, milliseconds }, { name: kind, show }));
  server.stop();
  await store.stop();
}

const [baseline, weir] = [results.get('baseline'), results.get('weir')];
if (baseline !== undefined && weir !== undefined) {
  compare(baseline, weir, [
    ['CPU', 'cpu'],
    ['memcached CPU', 'storeCpu'],
  ]);
}
process.exit(0);

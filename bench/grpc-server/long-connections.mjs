// What the service pays for garbage while its connections stay open, before and after a full collection. See README.md.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startRedis } from '../kvstore/redis.mjs';
import {
  CLOSED_LOOPS,
  CONNECTIONS,
  MANY,
  OUTSTANDING,
  answersTo,
  openCallers,
  say,
  sleep,
} from '../service/counting-load.mjs';
import { startInstance, storeSettings } from '../workers/instance.mjs';

const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
    against: { type: 'string' },
    store: { type: 'string', default: 'memory' },
    intervals: { type: 'string', default: '4' },
    outstanding: { type: 'string', default: String(OUTSTANDING) },
    seconds: { type: 'string', default: '5' },
  },
});
/** The interval that begins with a full collection. */
const COLLECTION_IN = 3;
const HOOKS = ['../service/report-collections.cjs', '../../test/support/processes/report-heap.cjs'];
const BODIES = CLOSED_LOOPS[`${MANY} keys`];

const redis = options.store === 'redis' ? await startRedis() : undefined;
const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true }));

/** A service with connections that stay open; they rest while another one is measured. */
async function start(name, dist) {
  const file = join(folder, name);
  const server = await startInstance(dist, {
    ...storeSettings(redis),
    NODE_OPTIONS: HOOKS.map((hook) => `--require=${fileURLToPath(new URL(hook, import.meta.url))}`).join(' '),
    WEIR_BENCH_COLLECTIONS: file,
  });
  const load = { isRunning: false };
  const callers = openCallers(server.port, BODIES, CONNECTIONS, (caller, answered) => {
    if (load.isRunning) caller.call(answered);
  });
  return { name, file, server, callers, load };
}

/**
 * The pauses in ms and the CPU time of a decision in µs, in one interval.
 *
 * @param collects whether the service collects all garbage when the load has begun, as it does now and then by itself
 */
async function measure({ file, server, callers, load }, collects) {
  load.isRunning = true;
  for (const caller of callers) caller.call(Number(options.outstanding));
  await sleep(500);
  if (collects) process.kill(server.pid, 'SIGUSR2');
  await sleep(500);
  const [began, before, calls] = [Date.now(), await server.usage(), answersTo(callers)];
  await sleep(Number(options.seconds) * 1_000);
  const [after, more] = [await server.usage(), answersTo(callers)];
  load.isRunning = false;
  await sleep(500);
  const pauses = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(' ').map(Number))
    .filter(([at]) => at >= began)
    .map(([, pause]) => pause);
  const sum = pauses.reduce((total, pause) => total + pause, 0);
  return { mean: sum / pauses.length, longest: Math.max(...pauses), cpu: (after.cpu - before.cpu) / (more - calls) };
}

const services = [await start('weir', options.dist)];
if (options.against !== undefined) services.push(await start('against', options.against));
for (let interval = 1; interval <= Number(options.intervals); interval += 1) {
  const collects = interval === COLLECTION_IN;
  for (const service of services) {
    const { mean, longest, cpu } = await measure(service, collects);
    say(
      `interval ${interval}${collects ? ', after a full collection' : ''}, ${service.name}: mean pause ${mean.toFixed(1)} ms, longest ${longest.toFixed(1)} ms, ` +
        `${cpu.toFixed(2)} µs of CPU per decision`,
    );
  }
}
for (const { server } of services) server.stop();
await redis?.stop();
process.exit(0);

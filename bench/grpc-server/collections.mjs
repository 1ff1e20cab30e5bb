// The pauses for collecting young objects while the memory store counts, with and without helper threads. See README.md.
import { createRequire } from 'node:module';
import { PerformanceObserver } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measureInProcess } from '../service/measurements.mjs';

const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
    rounds: { type: 'string', default: '5' },
    /** Set in the processes that measure: the number of different keys. */
    keys: { type: 'string' },
    'one-thread': { type: 'boolean', default: false },
  },
});
const HITS = 400_000;
const HITS_PER_TURN = 100;
/** What else a decision allocates. */
const OBJECTS_PER_HIT = 12;
const MINOR = 1;

async function measureCollections(keys) {
  const require = createRequire(import.meta.url);
  const { MemoryCounters } = require(`${options.dist}/sinks/counters/memory/memory-counters`);
  if (options['one-thread']) require(`${options.dist}/main/short-collections`).collectOnOneThread();
  const pauses = [];
  const observer = new PerformanceObserver((list) => {
    for (const { detail, duration } of list.getEntries()) if (detail.kind === MINOR) pauses.push(duration);
  });
  observer.observe({ entryTypes: ['gc'] });
  const counters = new MemoryCounters({ maxKeys: HITS, maxBytes: 1_000_000_000, now: Date.now });
  const before = process.cpuUsage();
  for (let hit = 0; hit < HITS; hit += 1) {
    Array.from({ length: OBJECTS_PER_HIT }, (_, number) => ({ number, text: `value-${number}`, list: [hit] }));
    const key = `bench_user_user-${hit % keys}_1700000000`;
    counters.countNow([{ key, hits: 1, windowSeconds: 3_600, guard: undefined, limit: 0, after: 0 }]);
    if (hit % HITS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const { user, system } = process.cpuUsage(before);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await counters.close();
  observer.disconnect();
  process.send({ pauses, cpu: (user + system) / 1_000 });
}

function inProcess(keys, isOneThread) {
  return measureInProcess(import.meta.url, [
    ...['--keys', String(keys), '--dist', options.dist],
    ...(isOneThread ? ['--one-thread'] : []),
  ]);
}

async function compare(name, keys) {
  const found = new Map([
    ['helper threads', []],
    ['one thread', []],
  ]);
  for (let round = 0; round < Number(options.rounds); round += 1) {
    for (const [threads, results] of found) results.push(await inProcess(keys, threads === 'one thread'));
  }
  for (const [threads, results] of found) {
    const pauses = results.flatMap((result) => result.pauses).toSorted((one, other) => one - other);
    const sum = pauses.reduce((total, pause) => total + pause, 0);
    const cpu = results.reduce((total, result) => total + result.cpu, 0) / results.length;
    process.stdout.write(
      `${name}, ${threads}: mean ${(sum / pauses.length).toFixed(2)} ms, ` +
        `90 % below ${pauses[Math.floor(pauses.length * 0.9)].toFixed(2)} ms, longest ${pauses.at(-1).toFixed(1)} ms, ` +
        `CPU of a run ${cpu.toFixed(0)} ms\n`,
    );
  }
}

if (options.keys === undefined) {
  await compare('known keys', 1_000);
  await compare('new keys', HITS);
} else await measureCollections(Number(options.keys));

// The pauses and the cost of tables with a million keys: a Map, the table of this project, and the whole memory store.
// See README.md.
import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
    keys: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    tables: { type: 'string', default: 'Map,WideMap,memory store' },
    /** Set in the processes that measure. */
    table: { type: 'string' },
  },
});
const KEYS = Number(options.keys);
/** Keys that are added between two turns of the event loop. */
const KEYS_PER_TURN = 100;
const LOOK_UPS = 2_000_000;
const HOUR = 3_600;

function keyOf(number) {
  return `bench_user_user-${number}_1700000000`;
}

/** A table that loses its oldest key when it has `KEYS` of them. */
function plainTable(entries) {
  return {
    add(number) {
      if (number >= KEYS) entries.delete(keyOf(number - KEYS));
      entries.set(keyOf(number), number);
    },
    read: (number) => entries.get(keyOf(number)),
  };
}

const TABLES = {
  Map: () => plainTable(new Map()),
  WideMap(load) {
    const { WideMap } = load('text/wide-map');
    return plainTable(new WideMap());
  },
  'memory store'(load) {
    const { MemoryCounters } = load('sinks/counters/memory/memory-counters');
    const counters = new MemoryCounters({ maxKeys: KEYS, now: Date.now });
    function hit(number) {
      const limit = { requestsPerUnit: 1, lengthSeconds: HOUR };
      const operation = { key: keyOf(number), hits: 1, limit, countAfter: 0 };
      counters.countNow([operation]);
      return operation.countAfter;
    }
    return { add: hit, read: hit };
  },
};

/**
 * Adds keys in small steps. Returns the longest step, and the one that one of a thousand exceeds, in milliseconds; and
 * the sum.
 */
async function addKeys(table, first) {
  const steps = [];
  for (let number = first; number < first + KEYS;) {
    const start = performance.now();
    for (const end = number + KEYS_PER_TURN; number < end; number += 1) table.add(number);
    steps.push(performance.now() - start);
    await nextTurn();
  }
  const sorted = steps.toSorted((one, other) => one - other);
  return {
    longest: sorted.at(-1),
    p999: sorted[Math.floor(sorted.length * 0.999)],
    each: (steps.reduce((sum, step) => sum + step, 0) / KEYS) * 1e6,
  };
}

/** Nanoseconds for each look-up. */
function readKeys(table) {
  const start = performance.now();
  let sum = 0;
  for (let count = 0; count < LOOK_UPS; count += 1) sum += table.read(KEYS + ((count * 7919) % KEYS));
  const each = ((performance.now() - start) / LOOK_UPS) * 1e6;
  // Also uses the results, so that the look-ups are made.
  if (!(sum > 0)) throw new Error('a key is missing');
  return each;
}

async function measure(name) {
  const require = createRequire(import.meta.url);
  function load(path) {
    return require(`${options.dist}/${path}`);
  }
  load('main/process').collectOnOneThread();
  const table = TABLES[name](load);
  const filled = await addKeys(table, 0);
  const replaced = await addKeys(table, KEYS);
  process.send({ filled, replaced, read: readKeys(table) });
}

/** Runs this script for one table in a process of its own, and resolves with its result. */
function inProcess(name) {
  const args = ['--table', name, '--dist', options.dist, '--keys', options.keys];
  const child = fork(fileURLToPath(import.meta.url), args);
  return new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`the measuring process exited with ${code}`)));
  });
}

/** The middle one of the numbers, or the upper one of two. */
function median(numbers) {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)];
}

async function compare() {
  const results = new Map(options.tables.split(',').map((name) => [name, []]));
  for (let round = 0; round < Number(options.rounds); round += 1) {
    for (const [name, rounds] of results) rounds.push(await inProcess(name));
  }
  process.stdout.write(`medians of ${options.rounds} rounds; steps of ${KEYS_PER_TURN} keys\n`);
  for (const [name, rounds] of results) {
    for (const [part, label] of [
      ['filled', `${KEYS} keys added`],
      ['replaced', `${KEYS} keys replaced`],
    ]) {
      const [longest, p999, each] = ['longest', 'p999', 'each'].map((figure) =>
        median(rounds.map((round) => round[part][figure])),
      );
      process.stdout.write(
        `${name}, ${label}: longest step ${longest.toFixed(1)} ms, 99.9 % below ${p999.toFixed(2)} ms, ${each.toFixed(0)} ns for each key\n`,
      );
    }
    const read = median(rounds.map((round) => round.read));
    process.stdout.write(`${name}, a known key: ${read.toFixed(0)} ns\n`);
  }
}

await (options.table === undefined ? compare() : measure(options.table));

// Servers that count in a store, in processes of their own, under load from this one. Costs are CPU time per answered call.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { PROFILES } from '../grpc-server/frames.cjs';
import { Caller, withPrefix } from '../grpc-server/load.mjs';
import { killAtExit } from './kill-at-exit.mjs';

const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
export const CONNECTIONS = 8;
/** Calls in flight on each connection of a closed loop. */
export const OUTSTANDING = 32;
const WARM_UP_MS = 1_500;
/** The paces of the open loops, in calls per second. */
const PACES = [4_000, 1_000];
/** The number of keys of the loads that are not on one key. */
export const MANY = 10_000;

export function say(line) {
  return process.stdout.write(`${line}\n`);
}

export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function field(tag, bytes) {
  return Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);
}

/** A request with one descriptor for each of these keys, of which each has its own value. */
function request(keys, number) {
  const descriptors = keys.map((key) => {
    const entry = Buffer.concat([field(0x0a, Buffer.from(key)), field(0x12, Buffer.from(`${key}-${number}`))]);
    return field(0x12, field(0x0a, entry));
  });
  return withPrefix(Buffer.concat([field(0x0a, Buffer.from('bench')), ...descriptors]));
}

function requests(keys, count) {
  return Array.from({ length: count }, (_, number) => request(keys, number));
}

const ONE_DESCRIPTOR = requests(['user'], MANY);
/** The calls of the closed loops, by the name of the load. */
export const CLOSED_LOOPS = {
  'a hot key': requests(['user'], 1),
  [`${MANY} keys`]: ONE_DESCRIPTOR,
  '3 descriptors': requests(['user', 'session', 'device'], MANY),
};

/**
 * @param module the URL of a module whose `start(options)` starts the server
 * @param options what `start` receives
 */
export async function startServer(module, options) {
  const child = fork(fileURLToPath(new URL('server-process.mjs', import.meta.url)), [
    module.href,
    JSON.stringify(options),
  ]);
  killAtExit(child);
  function next() {
    return new Promise((resolve, reject) => {
      child.once('message', resolve);
      child.once('exit', (code) => reject(new Error(`the server of ${module.href} exited with ${code}`)));
    });
  }
  const port = await next();
  return {
    port,
    usage: () => {
      const result = next();
      child.send('usage');
      return result;
    },
    stop: () => child.kill('SIGKILL'),
  };
}

/**
 * Measures the load for this time, after warming up.
 *
 * @param answered returns how many calls have been answered
 * @returns CPU of the server and of the store in µs per call, commands per 1,000 calls if the store counts them, and calls per second
 */
export async function measure({ server, store, milliseconds }, answered) {
  await sleep(WARM_UP_MS);
  const before = [await server.usage(), await store.usage(), answered(), performance.now()];
  await sleep(milliseconds);
  const after = [await server.usage(), await store.usage(), answered(), performance.now()];
  const calls = after[2] - before[2];
  return {
    cpu: (after[0].cpu - before[0].cpu) / calls,
    storeCpu: (after[1].cpu - before[1].cpu) / calls,
    commands: ((after[1].commands - before[1].commands) * 1_000) / calls,
    perSecond: (calls * 1_000) / (after[3] - before[3]),
  };
}

/** Connections whose calls visit all bodies. @param onAnswer receives a connection and how many of its calls were answered */
export function openCallers(port, bodies, connections, onAnswer) {
  const blocks = PROFILES.envoy(PATH);
  return Array.from(
    { length: connections },
    (_, connection) =>
      new Caller(port, {
        blocks,
        bodies: (call) => bodies[(call * connections + connection) % bodies.length],
        onAnswer,
      }),
  );
}

/** The calls of all connections that were answered. */
export function answersTo(callers) {
  return callers.reduce((sum, caller) => sum + caller.answered, 0);
}

/** Saturation: every answer is followed by the next call. */
export async function closedLoop(run, bodies, connections = CONNECTIONS) {
  const callers = openCallers(run.server.port, bodies, connections, (caller, answered) => caller.call(answered));
  for (const caller of callers) caller.call(OUTSTANDING);
  const result = await measure(run, () => answersTo(callers));
  for (const { socket } of callers) socket.destroy();
  return result;
}

/** Calls at a steady pace over all keys, and their latency. Responses are matched to calls in order, per connection. */
export async function openLoop(run, perSecond) {
  const waits = [];
  const begins = Array.from({ length: CONNECTIONS }, () => []);
  const callers = begins.map(
    (queue, connection) =>
      new Caller(run.server.port, {
        blocks: PROFILES.envoy(PATH),
        bodies: (call) => ONE_DESCRIPTOR[(call * CONNECTIONS + connection) % MANY],
        onAnswer: (_, answered) => {
          const now = performance.now();
          for (const begin of queue.splice(0, answered)) waits.push(now - begin);
        },
      }),
  );
  const began = performance.now();
  let begun = 0;
  const pace = setInterval(() => {
    const due = ((performance.now() - began) / 1_000) * perSecond;
    for (; begun < due; begun += 1) {
      const connection = begun % CONNECTIONS;
      begins[connection].push(performance.now());
      callers[connection].call(1);
    }
  }, 1);
  const result = await measure(run, () => waits.length);
  clearInterval(pace);
  for (const { socket } of callers) socket.destroy();
  const sorted = waits.slice(Math.floor(waits.length / 4)).toSorted((one, other) => one - other);
  function at(share) {
    return sorted[Math.floor(sorted.length * share)];
  }
  return { ...result, p50: at(0.5), p99: at(0.99) };
}

/**
 * The loads on one server, printed as they are measured.
 *
 * @param show turns a result into text
 * @returns the results by the name of the load
 */
export async function measureLoads(run, { name, show }) {
  const results = new Map();
  for (const [load, bodies] of Object.entries(CLOSED_LOOPS)) {
    const result = await closedLoop(run, bodies);
    say(`${name}: ${load}: ${show(result)}`);
    results.set(load, result);
  }
  for (const perSecond of PACES) {
    const result = await openLoop(run, perSecond);
    const latency = `p50 ${result.p50.toFixed(2)} ms, p99 ${result.p99.toFixed(2)} ms`;
    say(`${name}: ${perSecond}/s paced: ${show(result)}, ${latency}`);
    results.set(`${perSecond}/s paced`, result);
  }
  return results;
}

/** Prints how many times the baseline costs what weir does. @param figures names and properties of the results */
export function compare(baseline, weir, figures) {
  for (const [load, result] of weir) {
    const ratios = figures.map(([label, what]) => `${label} ${(baseline.get(load)[what] / result[what]).toFixed(1)}`);
    say(`baseline / weir, ${load}: ${ratios.join(', ')}`);
  }
}

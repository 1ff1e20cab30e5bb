// Servers that count in a store, in processes of their own, under load from this one. Costs are CPU time per answered call.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { PROFILES } from '../grpc-server/frames.mjs';
import { Caller, withPrefix } from '../grpc-server/load.mjs';
import { killAtExit } from './kill-at-exit.mjs';

const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const CONNECTIONS = 8;
const OUTSTANDING = 32;
const WARM_UP_MS = 1_500;
export const OPEN_LOOP_PER_SECOND = 4_000;
/** The number of keys of the loads that are not on one key. */
export const MANY = 10_000;

export function say(line) {
  return process.stdout.write(`${line}\n`);
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function field(tag, bytes) {
  return Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);
}

function request(number) {
  const entry = Buffer.concat([field(0x0a, Buffer.from('user')), field(0x12, Buffer.from(`user-${number}`))]);
  return Buffer.concat([field(0x0a, Buffer.from('bench')), field(0x12, field(0x0a, entry))]);
}

const bodies = Array.from({ length: MANY }, (_, number) => withPrefix(request(number)));

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

/** Saturation: every answer is followed by the next call. */
export async function closedLoop(run, keys) {
  const blocks = PROFILES.envoy(PATH);
  const callers = Array.from(
    { length: CONNECTIONS },
    (_, connection) =>
      new Caller(run.server.port, {
        blocks,
        bodies: (call) => bodies[(call * CONNECTIONS + connection) % keys],
        onAnswer: (caller, answered) => caller.call(answered),
      }),
  );
  for (const caller of callers) caller.call(OUTSTANDING);
  const result = await measure(run, () => callers.reduce((sum, caller) => sum + caller.answered, 0));
  for (const { socket } of callers) socket.destroy();
  return result;
}

/** Calls at a steady pace over all keys, and their latency. Responses are matched to calls in order, per connection. */
export async function openLoop(run) {
  const waits = [];
  const begins = Array.from({ length: CONNECTIONS }, () => []);
  const callers = begins.map(
    (queue, connection) =>
      new Caller(run.server.port, {
        blocks: PROFILES.envoy(PATH),
        bodies: (call) => bodies[(call * CONNECTIONS + connection) % MANY],
        onAnswer: (_, answered) => {
          const now = performance.now();
          for (const begin of queue.splice(0, answered)) waits.push(now - begin);
        },
      }),
  );
  const began = performance.now();
  let begun = 0;
  const pace = setInterval(() => {
    const due = ((performance.now() - began) / 1_000) * OPEN_LOOP_PER_SECOND;
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

/** The three loads on one server, printed as they are measured. @param show turns a result into text */
export async function measureLoads(run, { name, show }) {
  const hot = await closedLoop(run, 1);
  say(`${name}: a hot key: ${show(hot)}`);
  const many = await closedLoop(run, MANY);
  say(`${name}: ${MANY} keys: ${show(many)}`);
  const paced = await openLoop(run);
  const latency = `p50 ${paced.p50.toFixed(2)} ms, p99 ${paced.p99.toFixed(2)} ms`;
  say(`${name}: ${OPEN_LOOP_PER_SECOND}/s paced: ${show(paced)}, ${latency}`);
  return { hot, many, paced };
}

/** Prints how many times the baseline costs what weir does. @param figures names and properties of the results */
export function compare(baseline, weir, figures) {
  for (const [name, load] of [
    ['a hot key', 'hot'],
    [`${MANY} keys`, 'many'],
    ['paced', 'paced'],
  ]) {
    const ratios = figures.map(([label, what]) => `${label} ${(baseline[load][what] / weir[load][what]).toFixed(1)}`);
    say(`baseline / weir, ${name}: ${ratios.join(', ')}`);
  }
}

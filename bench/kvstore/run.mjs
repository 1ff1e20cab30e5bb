// Compares the cost of a decision counted in Redis: a common implementation against weir. See README.md.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { PROFILES } from '../grpc-server/frames.mjs';
import { Caller, withPrefix } from '../grpc-server/load.mjs';
import { startRedis } from './redis.mjs';

const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
    seconds: { type: 'string', default: '3' },
    servers: { type: 'string', default: 'baseline,weir' },
  },
});
const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const CONNECTIONS = 8;
const OUTSTANDING = 32;
const OPEN_LOOP_PER_SECOND = 4_000;
const MANY = 10_000;
const WARM_UP_MS = 1_500;
const MEASURE_MS = Number(options.seconds) * 1_000;

function say(line) {
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

async function startServer(kind, redis, keys = 0) {
  const child = fork(fileURLToPath(new URL('server-process.mjs', import.meta.url)), [
    kind,
    options.dist,
    String(redis.port),
    String(keys),
  ]);
  function next() {
    return new Promise((resolve, reject) => {
      child.once('message', resolve);
      child.once('exit', (code) => reject(new Error(`the ${kind} server exited with ${code}`)));
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

/** Measures the load for MEASURE_MS; costs are per call answered in that time. */
async function measure(server, redis, answered) {
  await sleep(WARM_UP_MS);
  const before = [await server.usage(), await redis.usage(), answered(), performance.now()];
  await sleep(MEASURE_MS);
  const after = [await server.usage(), await redis.usage(), answered(), performance.now()];
  const calls = after[2] - before[2];
  return {
    cpu: (after[0].cpu - before[0].cpu) / calls,
    redisCpu: (after[1].cpu - before[1].cpu) / calls,
    commands: ((after[1].commands - before[1].commands) * 1_000) / calls,
    perSecond: (calls * 1_000) / (after[3] - before[3]),
  };
}

async function closedLoop(server, redis, keys) {
  const blocks = PROFILES.envoy(PATH);
  const callers = Array.from(
    { length: CONNECTIONS },
    (_, connection) =>
      new Caller(server.port, {
        blocks,
        bodies: (call) => bodies[(call * CONNECTIONS + connection) % keys],
        onAnswer: (caller, answered) => caller.call(answered),
      }),
  );
  for (const caller of callers) caller.call(OUTSTANDING);
  const result = await measure(server, redis, () => callers.reduce((sum, caller) => sum + caller.answered, 0));
  for (const { socket } of callers) socket.destroy();
  return result;
}

/** Calls at a steady pace, and their latency. Responses are matched to calls in order, per connection. */
async function openLoop(server, redis) {
  const waits = [];
  const begins = Array.from({ length: CONNECTIONS }, () => []);
  const callers = begins.map(
    (queue, connection) =>
      new Caller(server.port, {
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
  const result = await measure(server, redis, () => waits.length);
  clearInterval(pace);
  for (const { socket } of callers) socket.destroy();
  const sorted = waits.slice(Math.floor(waits.length / 4)).toSorted((one, other) => one - other);
  function at(share) {
    return sorted[Math.floor(sorted.length * share)];
  }
  return { ...result, p50: at(0.5), p99: at(0.99) };
}

function show({ cpu, redisCpu, commands, perSecond }) {
  const costs = `${cpu.toFixed(2)} µs, Redis ${redisCpu.toFixed(2)} µs, ${commands.toFixed(1)} commands per 1,000`;
  return `${costs} (${Math.round(perSecond)}/s)`;
}

/** The decision path alone: calls made within the process. */
async function withoutServer(keys) {
  const redis = await startRedis();
  const server = await startServer('path', redis, keys);
  let decisions = 0;
  async function usage() {
    const result = await server.usage();
    ({ decisions } = result);
    return result;
  }
  const result = await measure({ usage }, redis, () => decisions);
  server.stop();
  await redis.stop();
  return result;
}

const results = new Map();
for (const kind of options.servers.split(',')) {
  const redis = await startRedis();
  const server = await startServer(kind, redis);
  const hot = await closedLoop(server, redis, 1);
  const many = await closedLoop(server, redis, MANY);
  const paced = await openLoop(server, redis);
  server.stop();
  await redis.stop();
  results.set(kind, { hot, many, paced });
  say(`${kind}: a hot key: ${show(hot)}`);
  say(`${kind}: ${MANY} keys: ${show(many)}`);
  say(
    `${kind}: ${OPEN_LOOP_PER_SECOND}/s paced: ${show(paced)}, p50 ${paced.p50.toFixed(2)} ms, p99 ${paced.p99.toFixed(2)} ms`,
  );
}

const [baseline, weir] = [results.get('baseline'), results.get('weir')];
if (baseline !== undefined && weir !== undefined) {
  for (const [name, load] of [
    ['a hot key', 'hot'],
    [`${MANY} keys`, 'many'],
    ['paced', 'paced'],
  ]) {
    function ratio(what) {
      return (baseline[load][what] / weir[load][what]).toFixed(1);
    }
    say(`baseline / weir, ${name}: CPU ${ratio('cpu')}, Redis CPU ${ratio('redisCpu')}, commands ${ratio('commands')}`);
  }
}
say(`decision path without a server: a hot key: ${show(await withoutServer(1))}`);
say(`decision path without a server: ${MANY} keys: ${show(await withoutServer(MANY))}`);
process.exit(0);

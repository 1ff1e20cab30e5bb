// The time that a process needs until it is healthy, its first calls, and its memory and CPU at rest, next to a Node
// process with nothing of weir and, with --go, to the Go service. See README.md.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(import.meta.url);
const { Client, credentials } = require('@grpc/grpc-js');
const { RateLimitRequest } = require('../../dist/gen/envoy/service/ratelimit/v3/rls.js');
const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: `${ROOT}/dist` },
    rounds: { type: 'string', default: '5' },
    /** How long a process rests before its memory is read, in seconds; meanwhile its CPU time is counted. */
    rest: { type: 'string', default: '5' },
    /** The rule files of the last two rows. */
    files: { type: 'string', default: '1000' },
    /** The program of the Go service; both count in a redis-server then. */
    go: { type: 'string' },
    /** Another build of weir to measure in turn. */
    against: { type: 'string' },
    /** Processes that compute without a pause meanwhile. */
    busy: { type: 'string', default: '0' },
  },
});
const BARE = `require('node:http').createServer((_, response) => response.end()).listen(process.env.PORT)`;
const WEIR = [process.execPath, `${options.dist}/main.js`];
const manyFiles = mkdtempSync(join(tmpdir(), 'weir-bench-'));
mkdirSync(join(manyFiles, 'config'));
for (let file = 0; file < Number(options.files); file += 1) {
  const rule = '{ key: a, rate_limit: { unit: minute, requests_per_unit: 10 } }';
  writeFileSync(join(manyFiles, 'config', `${file}.yaml`), `domain: d${file}\ndescriptors:\n  - ${rule}\n`);
}
const redis = options.go && (await startRedis());
const IN_REDIS = redis && {
  BACKEND_TYPE: 'redis',
  REDIS_TYPE: 'SINGLE',
  REDIS_SOCKET_TYPE: 'tcp',
  REDIS_URL: redis.url,
};
/** By name: the program with its arguments, and settings. */
const PROGRAMS = {
  'bare Node': [[process.execPath, '-e', BARE]],
  weir: [WEIR],
  ...(options.against && { 'weir, the other build': [[process.execPath, `${options.against}/main.js`]] }),
  ...(redis && { 'weir, Redis': [WEIR, IN_REDIS] }),
  ...(redis &&
    options.against && { 'the other build, Redis': [[process.execPath, `${options.against}/main.js`], IN_REDIS] }),
  ...(redis && { 'Go service, Redis': [[options.go], { ...IN_REDIS, USE_STATSD: 'false' }] }),
  [`${options.files} files`]: [WEIR, { RUNTIME_ROOT: manyFiles }],
  [`${options.files} files, root watched`]: [WEIR, { RUNTIME_ROOT: manyFiles, RUNTIME_WATCH_ROOT: 'true' }],
};
const SETTINGS = {
  RUNTIME_ROOT: `${ROOT}/examples`,
  RUNTIME_WATCH_ROOT: 'false',
  BACKEND_TYPE: 'memory',
  DISABLE_STATS: 'true',
  LOG_LEVEL: 'error',
  HOST: '127.0.0.1',
  GRPC_HOST: '127.0.0.1',
  DEBUG_HOST: '127.0.0.1',
  DEBUG_PORT: '0',
};

async function startRedis() {
  const port = await freePort();
  const args = ['--port', port, '--bind', '127.0.0.1', '--save', ''].map(String);
  const child = spawn('redis-server', args, { stdio: 'ignore' });
  return { url: `127.0.0.1:${port}`, child };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function isHealthy(port) {
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path: '/healthcheck' }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on('error', () => resolve(false));
  });
}

/** The CPU time of all threads so far, in milliseconds; the system counts in steps of ten. */
function cpuTime(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function residentMegabytes(pid) {
  return (Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))[1]) * 1_024) / 1e6;
}

const CALL = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
/** Calls of a new client, one after the other, with pauses in which a service could do something else. */
const FIRST_CALLS = 200;
const MESSAGE = RateLimitRequest.encode({
  domain: 'shop',
  descriptors: [{ entries: [{ key: 'user', value: 'anna' }], isNegativeHits: false }],
  hitsAddend: 0,
}).finish();

function sameBytes(bytes) {
  return Buffer.from(bytes);
}

/** The milliseconds that each call took. */
async function firstCalls(port) {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  const durations = [];
  for (let call = 0; call < FIRST_CALLS; call += 1) {
    const start = performance.now();
    await new Promise((resolve, reject) => {
      client.makeUnaryRequest(CALL, sameBytes, sameBytes, MESSAGE, (error) => (error ? reject(error) : resolve()));
    });
    durations.push(performance.now() - start);
    await sleep(2);
  }
  client.close();
  return {
    first: durations[0],
    early: median(durations.slice(0, 20)),
    warm: median(durations.slice(60, 100)),
    late: durations.filter((duration) => duration > 20).length,
  };
}

async function measure([program, ...args], settings) {
  const [port, grpcPort] = [await freePort(), await freePort()];
  const start = performance.now();
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, ...SETTINGS, ...settings, PORT: String(port), GRPC_PORT: String(grpcPort) },
    stdio: 'inherit',
  });
  try {
    while (!(await isHealthy(port))) {
      if (child.exitCode !== null) throw new Error('the process has ended');
      await sleep(2);
    }
    const healthy = performance.now() - start;
    const cpu = cpuTime(child.pid);
    const calls = args.includes(BARE) || settings?.RUNTIME_ROOT ? undefined : await firstCalls(grpcPort);
    // What follows the start is not rest.
    await sleep(1_000);
    const before = cpuTime(child.pid);
    await sleep(Number(options.rest) * 1_000);
    const atRest = (cpuTime(child.pid) - before) / Number(options.rest) / 10;
    return { healthy, cpu, atRest, resident: residentMegabytes(child.pid), ...calls };
  } finally {
    child.kill();
    await once(child, 'exit');
  }
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}

const burners = Array.from({ length: Number(options.busy) }, () => spawn(process.execPath, ['-e', 'for (;;);']));
const results = Object.fromEntries(Object.keys(PROGRAMS).map((name) => [name, []]));
try {
  // The first calls of this process compile the client.
  await measure(WEIR);
  for (let round = 0; round < Number(options.rounds); round += 1) {
    for (const [name, program] of Object.entries(PROGRAMS)) results[name].push(await measure(...program));
  }
} finally {
  for (const child of [...burners, ...(redis ? [redis.child] : [])]) child.kill('SIGKILL');
  rmSync(manyFiles, { recursive: true });
}
for (const [name, values] of Object.entries(results)) {
  const { healthy, cpu, atRest, resident, first, early, warm } = Object.fromEntries(
    Object.keys(values[0]).map((key) => [key, median(values.map((each) => each[key]))]),
  );
  const start = `healthy after ${healthy.toFixed(0)} ms, ${cpu} ms of CPU time`;
  console.log(`${name.padEnd(24)} ${start}; at rest ${resident.toFixed(1)} MB, ${atRest.toFixed(2)} % of a core`);
  if (first === undefined) continue;
  const late = values.map((each) => each.late).join(', ');
  const calls = `first call ${first.toFixed(1)} ms, median of 20 ${early.toFixed(2)}, of calls 60 to 100 ${warm.toFixed(2)}`;
  console.log(`${''.padEnd(24)} ${calls}; over 20 ms in each round: ${late}`);
}

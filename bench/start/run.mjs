// The time that a process needs until it is healthy, and its memory at rest, next to a Node process with nothing of weir. See README.md.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: `${ROOT}/dist` },
    rounds: { type: 'string', default: '5' },
    /** How long a process rests before its memory is read, in seconds. */
    rest: { type: 'string', default: '5' },
  },
});
const BARE = `require('node:http').createServer((_, response) => response.end()).listen(process.env.PORT)`;
/** Programs by name, as arguments of Node. */
const PROGRAMS = { 'bare Node': ['-e', BARE], weir: [`${options.dist}/main.js`] };
const SETTINGS = {
  RUNTIME_ROOT: `${ROOT}/examples`,
  RUNTIME_WATCH_ROOT: 'false',
  BACKEND_TYPE: 'memory',
  DISABLE_STATS: 'true',
  LOG_LEVEL: 'error',
  HOST: '127.0.0.1',
  GRPC_PORT: '0',
  DEBUG_PORT: '0',
};

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

async function measure(program) {
  const port = await freePort();
  const start = performance.now();
  const child = spawn(process.execPath, program, {
    env: { PATH: process.env.PATH, ...SETTINGS, PORT: String(port) },
    stdio: 'inherit',
  });
  try {
    while (!(await isHealthy(port))) {
      if (child.exitCode !== null) throw new Error('the process has ended');
      await sleep(2);
    }
    const healthy = performance.now() - start;
    const cpu = cpuTime(child.pid);
    await sleep(Number(options.rest) * 1_000);
    return { healthy, cpu, resident: residentMegabytes(child.pid) };
  } finally {
    child.kill();
    await once(child, 'exit');
  }
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}

const results = Object.fromEntries(Object.keys(PROGRAMS).map((name) => [name, []]));
for (let round = 0; round < Number(options.rounds); round += 1) {
  for (const [name, program] of Object.entries(PROGRAMS)) results[name].push(await measure(program));
}
for (const [name, values] of Object.entries(results)) {
  const { healthy, cpu, resident } = Object.fromEntries(
    ['healthy', 'cpu', 'resident'].map((key) => [key, median(values.map((each) => each[key]))]),
  );
  console.log(
    `${name.padEnd(10)} healthy after ${healthy.toFixed(0)} ms, ${cpu} ms of CPU time, ${resident.toFixed(1)} MB at rest`,
  );
}

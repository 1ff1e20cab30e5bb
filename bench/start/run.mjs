// The time that a process needs until it is healthy, and its memory and CPU at rest, next to a Node process with nothing of weir. See README.md.
import { spawn } from 'node:child_process';
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
const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: `${ROOT}/dist` },
    rounds: { type: 'string', default: '5' },
    /** How long a process rests before its memory is read, in seconds; meanwhile its CPU time is counted. */
    rest: { type: 'string', default: '5' },
    /** The rule files of the last two rows. */
    files: { type: 'string', default: '1000' },
  },
});
const BARE = `require('node:http').createServer((_, response) => response.end()).listen(process.env.PORT)`;
const WEIR = [`${options.dist}/main.js`];
const manyFiles = mkdtempSync(join(tmpdir(), 'weir-bench-'));
mkdirSync(join(manyFiles, 'config'));
for (let file = 0; file < Number(options.files); file += 1) {
  const rule = '{ key: a, rate_limit: { unit: minute, requests_per_unit: 10 } }';
  writeFileSync(join(manyFiles, 'config', `${file}.yaml`), `domain: d${file}\ndescriptors:\n  - ${rule}\n`);
}
/** By name: the arguments of Node, and settings. */
const PROGRAMS = {
  'bare Node': [['-e', BARE]],
  weir: [WEIR],
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

async function measure(program, settings) {
  const port = await freePort();
  const start = performance.now();
  const child = spawn(process.execPath, program, {
    env: { PATH: process.env.PATH, ...SETTINGS, ...settings, PORT: String(port) },
    stdio: 'inherit',
  });
  try {
    while (!(await isHealthy(port))) {
      if (child.exitCode !== null) throw new Error('the process has ended');
      await sleep(2);
    }
    const healthy = performance.now() - start;
    const cpu = cpuTime(child.pid);
    // What follows the start is not rest.
    await sleep(1_000);
    const before = cpuTime(child.pid);
    await sleep(Number(options.rest) * 1_000);
    const atRest = (cpuTime(child.pid) - before) / Number(options.rest) / 10;
    return { healthy, cpu, atRest, resident: residentMegabytes(child.pid) };
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
  for (const [name, program] of Object.entries(PROGRAMS)) results[name].push(await measure(...program));
}
rmSync(manyFiles, { recursive: true });
for (const [name, values] of Object.entries(results)) {
  const { healthy, cpu, atRest, resident } = Object.fromEntries(
    ['healthy', 'cpu', 'atRest', 'resident'].map((key) => [key, median(values.map((each) => each[key]))]),
  );
  const start = `healthy after ${healthy.toFixed(0)} ms, ${cpu} ms of CPU time`;
  console.log(`${name.padEnd(24)} ${start}; at rest ${resident.toFixed(1)} MB, ${atRest.toFixed(2)} % of a core`);
}

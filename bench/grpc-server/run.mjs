// Compares the CPU time of the server process per call on the servers in servers/. See README.md.
import { fork } from 'node:child_process';
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { PROFILES, opening } from './frames.cjs';
import { Caller, withPrefix } from './load.mjs';
import { PATH } from './servers/constant.mjs';

const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
    seconds: { type: 'string', default: '3' },
    servers: { type: 'string', default: 'grpc-js,node-http2,http2,weir' },
    idle: { type: 'string', default: '10000' },
  },
});
const CONNECTIONS = 8;
const OUTSTANDING = 32;
const OPEN_LOOP_PER_SECOND = 4_000;
const KEYS = 10_000;
const WARM_UP_MS = 1_000;
const MEASURE_MS = Number(options.seconds) * 1_000;

function say(line) {
  return process.stdout.write(`${line}\n`);
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function startServer(kind) {
  const child = fork(fileURLToPath(new URL('server-process.mjs', import.meta.url)), [kind, options.dist], {
    execArgv: ['--expose-gc'],
  });
  function next() {
    return new Promise((resolve, reject) => {
      child.once('message', resolve);
      child.once('exit', (code) => reject(new Error(`the ${kind} server exited with ${code}`)));
    });
  }
  const port = await next();
  function query(measurement) {
    const result = next();
    child.send(measurement);
    return result;
  }
  return { port, query, stop: () => child.kill('SIGKILL') };
}

function field(tag, bytes) {
  return Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);
}

/** A RateLimitRequest with one descriptor: domain `bench`, user=user-n, which matches a rule that counts each value separately. */
function request(number) {
  const entry = Buffer.concat([field(0x0a, Buffer.from('user')), field(0x12, Buffer.from(`user-${number}`))]);
  return Buffer.concat([field(0x0a, Buffer.from('bench')), field(0x12, field(0x0a, entry))]);
}

const bodies = Array.from({ length: KEYS }, (_, number) => withPrefix(request(number)));

function connect(port, profile, onAnswer) {
  const blocks = PROFILES[profile](PATH);
  return Array.from({ length: CONNECTIONS }, (_, connection) => {
    function body(call) {
      return bodies[(call * CONNECTIONS + connection) % KEYS];
    }
    return new Caller(port, { blocks, bodies: body, onAnswer });
  });
}

function answeredBy(callers) {
  return callers.reduce((sum, caller) => sum + caller.answered, 0);
}

function close(callers) {
  for (const { socket } of callers) socket.destroy();
}

async function measure(server, callers) {
  await sleep(WARM_UP_MS);
  const cpuBefore = await server.query('cpu');
  const answeredBefore = answeredBy(callers);
  const began = performance.now();
  await sleep(MEASURE_MS);
  const cpu = (await server.query('cpu')) - cpuBefore;
  const answered = answeredBy(callers) - answeredBefore;
  return { cpuPerCall: cpu / answered, perSecond: (answered * 1_000) / (performance.now() - began) };
}

async function closedLoop(server, profile) {
  const callers = connect(server.port, profile, (caller, answered) => caller.call(answered));
  for (const caller of callers) caller.call(OUTSTANDING);
  const result = await measure(server, callers);
  close(callers);
  return result;
}

async function openLoop(server) {
  const callers = connect(server.port, 'envoy');
  const began = performance.now();
  let begun = 0;
  const pace = setInterval(() => {
    const due = ((performance.now() - began) / 1_000) * OPEN_LOOP_PER_SECOND;
    for (; begun < due; begun += 1) callers[begun % CONNECTIONS].call(1);
  }, 1);
  const result = await measure(server, callers);
  clearInterval(pace);
  close(callers);
  return result;
}

/** Resident memory of the server per idle connection, in bytes. */
async function idleMemory(server, count) {
  const before = await server.query('memory');
  const sockets = [];
  for (let opened = 0; opened < count; opened += 1) {
    const socket = net.connect({ port: server.port, host: '127.0.0.1' });
    socket.write(opening());
    await new Promise((resolve) => socket.once('data', resolve));
    sockets.push(socket);
  }
  const memory = ((await server.query('memory')) - before) / count;
  for (const socket of sockets) socket.destroy();
  return memory;
}

const results = new Map();
for (const kind of options.servers.split(',')) {
  const server = await startServer(kind);
  const envoy = await closedLoop(server, 'envoy');
  const deadline = await closedLoop(server, 'deadline');
  const paced = await openLoop(server);
  server.stop();
  const fresh = await startServer(kind);
  const memory = await idleMemory(fresh, Number(options.idle));
  fresh.stop();
  results.set(kind, { envoy, deadline, paced, memory });
  function us({ cpuPerCall, perSecond }) {
    return `${cpuPerCall.toFixed(2)} µs (${Math.round(perSecond)}/s)`;
  }
  say(
    `${kind}: CPU per call: Envoy's blocks ${us(envoy)}; a new deadline each ${us(deadline)}; ` +
      `${OPEN_LOOP_PER_SECOND}/s paced ${us(paced)}; ${(memory / 1_024).toFixed(1)} KiB per idle connection`,
  );
}

const http2 = results.get('http2');
if (http2 !== undefined) {
  for (const [kind, { envoy, deadline, paced }] of results) {
    if (kind === 'http2') continue;
    function ratio(theirs, ours) {
      return (theirs.cpuPerCall / ours.cpuPerCall).toFixed(1);
    }
    say(
      `${kind} / http2: ${ratio(envoy, http2.envoy)} (Envoy's blocks), ${ratio(deadline, http2.deadline)} ` +
        `(a new deadline each), ${ratio(paced, http2.paced)} (paced)`,
    );
  }
}

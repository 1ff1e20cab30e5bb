// Compares the CPU time of the server process per call of POST /json: Koa and Node's HTTP server with a constant response against weir.
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { say, startServer } from '../service/counting-load.mjs';
import { median } from '../service/measurements.mjs';

const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
    servers: { type: 'string', default: 'koa,node-http,weir' },
    rounds: { type: 'string', default: '15' },
  },
});
const CONNECTIONS = 64;
const KEYS = 10_000;
const SLICE_MS = 300;
const SETTLE_MS = 50;

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const requests = Array.from({ length: KEYS }, (_, number) => {
  const body = JSON.stringify({
    domain: 'bench',
    descriptors: [{ entries: [{ key: 'user', value: `user-${number}` }] }],
  });
  const headers = `Host: weir\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  return `POST /json HTTP/1.1\r\n${headers}\r\n\r\n${body}`;
});

/** Connections with one call outstanding each, while the load runs. Every response ends with the only `]}` that it has. */
class Load {
  answered = 0;
  #sent = 0;
  #isRunning = false;
  #idle = [];

  constructor(port) {
    for (let connection = 0; connection < CONNECTIONS; connection += 1) {
      const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
      socket.on('data', (bytes) => this.#received(socket, bytes));
      this.#idle.push(socket);
    }
  }

  run() {
    this.#isRunning = true;
    for (const socket of this.#idle.splice(0)) this.#send(socket);
  }

  pause() {
    this.#isRunning = false;
  }

  #send(socket) {
    socket.write(requests[this.#sent % KEYS]);
    this.#sent += 1;
  }

  #received(socket, bytes) {
    if (bytes.at(-2) !== 0x5d || bytes.at(-1) !== 0x7d) return;
    this.answered += 1;
    if (this.#isRunning) this.#send(socket);
    else this.#idle.push(socket);
  }
}

async function slice({ server, load }) {
  load.run();
  await sleep(SETTLE_MS);
  const before = [await server.usage(), load.answered];
  await sleep(SLICE_MS);
  const after = [await server.usage(), load.answered];
  load.pause();
  await sleep(SETTLE_MS);
  return (after[0].cpu - before[0].cpu) / (after[1] - before[1]);
}

const runs = [];
for (const kind of options.servers.split(',')) {
  const server = await startServer(new URL(`servers/${kind}.mjs`, import.meta.url), { dist: options.dist });
  runs.push({ kind, server, load: new Load(server.port), costs: [] });
}
// The servers take turns, so that other work on the machine meets all of them.
for (let round = -3; round < Number(options.rounds); round += 1) {
  for (const run of runs) {
    const cost = await slice(run);
    if (round >= 0) run.costs.push(cost);
  }
}
const [{ costs: baseline }] = runs;
for (const { kind, costs } of runs) {
  const ratio = median(costs.map((cost, round) => baseline[round] / cost));
  say(`${kind}: ${median(costs).toFixed(1)} µs per call, ${runs[0].kind} / ${kind} ${ratio.toFixed(2)}`);
}
process.exit(0);

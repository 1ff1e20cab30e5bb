// The CPU time of a call within one process, from the frames of its request to those of its response. See README.md.
import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { decisionPath, rule } from '../service/decision-path.mjs';
import { explainedParts } from '../service/explained-parts.mjs';
import { PROFILES, SETTINGS_ACK, frame, opening } from './frames.cjs';
import { withPrefix } from './load.mjs';
import { PATH } from './servers/constant.mjs';

const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
    against: { type: 'string' },
    explained: { type: 'boolean', default: false },
    slices: { type: 'string', default: '60' },
    scenarios: { type: 'string' },
  },
});
const CONNECTIONS = 8;
const OUTSTANDING = 32;
/** Long enough for the clock of the CPU time, short enough to run between the slices of other processes. */
const SLICE_MS = 20;
const WARM_UP_SLICES = 15;
const DATA = 0;
const HEADERS = 1;
const FRAME_HEADER_BYTES = 9;
const END_STREAM = 1;
const END_HEADERS = 4;

function field(tag, bytes) {
  return Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);
}

function descriptor(key, value) {
  const entry = Buffer.concat([field(0x0a, Buffer.from(key)), field(0x12, Buffer.from(value))]);
  return field(0x12, field(0x0a, entry));
}

function request(...descriptors) {
  return withPrefix(Buffer.concat([field(0x0a, Buffer.from('bench')), ...descriptors]));
}

function user(number) {
  return descriptor('user', `user-${number}`);
}

function path(number) {
  return descriptor('path', `/v1/things/${number % 1_000}`);
}

function tenant(number) {
  return descriptor('tenant', `tenant-${number % 100}`);
}

const BANNED = { unit: 'DAY', requestsPerUnit: 0, unlimited: false, name: '', replaces: [] };
const RULES = [rule('user'), rule('path'), rule('tenant'), rule('banned', '', { rateLimit: BANNED })];

/** By name: the number of different requests, the n-th of them, and how many a connection receives in a turn. */
const SCENARIOS = {
  'a hot key': [1, (number) => request(user(number))],
  '10000 keys': [10_000, (number) => request(user(number))],
  'a million keys': [1_000_000, (number) => request(user(number))],
  '3 descriptors': [10_000, (number) => request(user(number), path(number), tenant(number))],
  'over limit': [10_000, (number) => request(descriptor('banned', `user-${number}`))],
  'one call at a time': [10_000, (number) => request(user(number)), 1],
};

/** A socket whose peer reads everything, and counts ended responses. */
class MemorySocket extends EventEmitter {
  writableLength = 0;
  bytesRead = 1;
  remoteAddress = '127.0.0.1';
  answered = 0;

  write(bytes) {
    for (
      let at = 0;
      at < bytes.length;
      at += FRAME_HEADER_BYTES + (bytes[at] << 16) + (bytes[at + 1] << 8) + bytes[at + 2]
    ) {
      if (bytes[at + 3] === HEADERS && (bytes[at + 4] & END_STREAM) !== 0) this.answered += 1;
    }
    return true;
  }

  pause() {}
  resume() {}
  end() {}
  destroy() {}
}

class Service {
  sockets = [];
  #calls = 0;
  #streams = 0;

  /** @param dist a build @param isExplained with what explains decisions */
  constructor(dist, isExplained = false) {
    const require = createRequire(import.meta.url);
    function load(module) {
      return require(`${dist}/${module}`);
    }
    const statistics = new (load('statistics/statistics').Statistics)(10_000);
    const decide = decisionPath(load, { rules: RULES, statistics, ...(isExplained && explainedParts(load)) });
    const { shouldRateLimit } = load('grpc/rate-limit/rate-limit-service');
    const { observedMethods } = load('grpc/observed-methods');
    const { GrpcApplication } = load('grpc/server/grpc-application');
    const { FailureBlocks } = load('grpc/server/headers/responses');
    const { Http2Server } = load('grpc/http2/server');
    const { turnClock } = load('sources/event-loop-turns');
    function now() {
      return performance.now();
    }
    const handle = shouldRateLimit(decide, statistics, { debug() {} });
    const context = { failures: new FailureBlocks(), inflater: undefined, now, handlerFailed: fail };
    const application = new GrpcApplication(
      context,
      observedMethods(new Map([[PATH, handle]]), { statistics, now: turnClock() }),
      new Map(),
      [],
    );
    const server = new Http2Server({ application, onInternalError: fail, onRejected: fail });
    this.blocks = PROFILES.envoy(PATH);
    for (let opened = 0; opened < CONNECTIONS; opened += 1) {
      const socket = new MemorySocket();
      server.listener.emit('connection', socket);
      socket.emit('data', Buffer.concat([opening(), SETTINGS_ACK]));
      this.sockets.push(socket);
    }
  }

  /** Sends a chunk with calls on each connection, all in one turn, and waits for the answers. Returns the number of calls. */
  async turn(outstanding, chunks) {
    const expected = this.#answered() + chunks.length * outstanding;
    for (const [connection, chunk] of chunks.entries()) this.sockets[connection].emit('data', chunk);
    while (this.#answered() < expected) await new Promise((resolve) => setImmediate(resolve));
    return chunks.length * outstanding;
  }

  /** The chunks of the next turn. */
  prepare(scenario, bodies) {
    const [different, body] = scenario;
    const outstanding = outstandingOf(scenario);
    const connections = outstanding === 1 ? 1 : CONNECTIONS;
    const first = this.#streams;
    this.#streams += outstanding;
    return Array.from({ length: connections }, () => {
      const frames = [];
      for (let call = first; call < first + outstanding; call += 1) {
        const stream = 2 * call + 1;
        const number = this.#calls % different;
        this.#calls += 1;
        frames.push(frame(HEADERS, END_HEADERS, stream, this.blocks(call)));
        frames.push(frame(DATA, END_STREAM, stream, (bodies[number] ??= body(number))));
      }
      return Buffer.concat(frames);
    });
  }

  #answered() {
    return this.sockets.reduce((sum, { answered }) => sum + answered, 0);
  }
}

function outstandingOf([, , outstanding = OUTSTANDING]) {
  return outstanding;
}

function fail(...reasons) {
  throw new Error(`the server reports ${reasons.map(String).join(', ')}`);
}

function cpu() {
  const usage = process.cpuUsage();
  return usage.user + usage.system;
}

/** Returns µs of CPU time per call. */
async function slice(service, scenario, bodies, turns) {
  const prepared = Array.from({ length: turns }, () => service.prepare(scenario, bodies));
  const before = cpu();
  let calls = 0;
  for (const chunks of prepared) calls += await service.turn(outstandingOf(scenario), chunks);
  return (cpu() - before) / calls;
}

function quantile(values, share) {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * share)];
}

const services = new Map([['weir', new Service(options.dist, options.explained)]]);
const other = options.against ?? (options.explained ? options.dist : undefined);
if (other !== undefined) services.set('against', new Service(other));
for (const [name, scenario] of Object.entries(SCENARIOS)) {
  if (options.scenarios !== undefined && !options.scenarios.split(',').includes(name)) continue;
  const outstanding = outstandingOf(scenario);
  const callsPerTurn = outstanding === 1 ? 1 : CONNECTIONS * outstanding;
  const turns = Math.ceil((SLICE_MS * 400) / callsPerTurn);
  const bodies = [];
  const costs = new Map([...services.keys()].map((key) => [key, []]));
  const warmUp = Math.max(WARM_UP_SLICES, Math.ceil(scenario[0] / (turns * callsPerTurn)));
  for (let round = -warmUp; round < Number(options.slices); round += 1) {
    const order = [...services];
    if (round % 2 !== 0) order.reverse();
    for (const [key, service] of order) {
      const cost = await slice(service, scenario, bodies, turns);
      if (round >= 0) costs.get(key).push(cost);
    }
  }
  function ratioAt(share) {
    const [weir, against] = [...costs.values()].map((each) => quantile(each, share));
    return (weir / against).toFixed(3);
  }
  const shown = [...costs].map(
    ([key, each]) => `${key} ${quantile(each, 0.5).toFixed(2)} µs (lowest ${quantile(each, 0).toFixed(2)})`,
  );
  const ratio =
    costs.size === 1 ? '' : `; weir / against ${ratioAt(0.5)} (lower quartile ${ratioAt(0.25)}, lowest ${ratioAt(0)})`;
  process.stdout.write(`${name}: ${shown.join(', ')}${ratio}\n`);
}
process.exit(0);

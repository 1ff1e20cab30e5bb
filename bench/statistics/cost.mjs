// The cost that statistics add to a decision: the path from the bytes of a call to its response, with statistics kept and sent as the
// service does, with DISABLE_STATS, and without statistics. Each variant runs in its own process, so that no code is optimised for the
// objects of another variant. The processes take turns of about 50 ms in random order, and the median of the ratios is shown: on a shared
// machine, other work slows neighbouring turns alike. The baseline appears twice, to show the ratio of two equal variants.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createRequire } from 'node:module';
import { decisionPath, rule } from '../service/decision-path.mjs';

const require = createRequire(import.meta.url);

function load(path) {
  return require(`../../dist/${path}.js`);
}

/** How often all processes are replaced: two processes of the same variant differ by about 5 %. */
const GENERATIONS = 10;
/** Turns of each process in a generation. */
const ROUNDS = 30;
const WARM_UP = 300_000;
/** Calls in one turn. */
const SLICE = 20_000;
/** Calls that arrive in one turn of the event loop. */
const CALLS_PER_TURN = 200;
const KEYS = 10_000;
/** In milliseconds; a tenth of the default, so that every run contains flushes. */
const FLUSH_INTERVAL = 1_000;

/** Accepts everything that is counted, in one shared object. */
class NoStatistics {
  #rule = new (load('statistics/rule-statistics').RuleStatistics)('none');
  #counter = { value: 0, add() {} };
  rules = [];
  counters = [];
  gauges = [];
  counter() {
    return this.#counter;
  }
  gauge() {}
  rule() {
    return this.#rule;
  }
  runtimeRule() {
    return this.#rule;
  }
  runtimeCounter() {
    return this.#counter;
  }
}

const STARTED_AT = performance.now();

/** A call as the gRPC server passes it to its handler. */
class Call {
  static bytes = 0;
  pending = undefined;
  receivedAt = STARTED_AT;
  reply(message) {
    Call.bytes += message.length;
  }
  fail(status, message) {
    throw new Error(`${status}: ${message}`);
  }
  onCancel(pending) {
    this.pending = pending;
  }
}

function requests() {
  const { RateLimitRequest } = load('gen/envoy/service/ratelimit/v3/rls');
  return Array.from({ length: KEYS }, (_, user) => {
    const entries = [{ key: 'user', value: `user-${user}` }];
    const descriptors = [{ entries, limit: undefined, hitsAddend: undefined, isNegativeHits: false }];
    return Buffer.from(RateLimitRequest.encode({ domain: 'bench', descriptors, hitsAddend: 0 }).finish());
  });
}

/** The handler of ShouldRateLimit, counting in memory. */
function handler(statistics, detailedMetric) {
  const decide = decisionPath(load, { rules: [rule('user', '', { detailedMetric })], statistics });
  return load('grpc/rate-limit/rate-limit-service').shouldRateLimit(decide, statistics, { debug() {} });
}

/** The handler with every call counted and timed, as in the service. */
function measured(handle, statistics) {
  const methods = new Map([['/s/ShouldRateLimit', handle]]);
  const clock = load('sources/event-loop-turns').turnClock();
  return load('grpc/observed-methods').observedMethods(methods, { statistics, now: clock }).get('/s/ShouldRateLimit');
}

/** Pushes to a daemon and keeps an exposition for scrapes: both record every duration. */
function startOutputs(statistics, port) {
  const { Exposition } = load('sinks/statistics/exposition/exposition');
  const { Mapper } = load('sinks/statistics/mapping/mapping');
  const { builtInMapping } = load('sinks/statistics/mapping/built-in-mapping');
  const { SendingOutput } = load('sinks/statistics/senders/sending-output');
  const { TcpSender } = load('sinks/statistics/senders/connection-sender');
  const log = { isDebug: false, debug() {}, info() {}, warn: console.warn, error: console.error };
  const exposition = new Exposition({
    statistics,
    mapper: new Mapper(builtInMapping(false)),
    labels: {},
    reserved: new Set(),
    onConflict() {},
    now: () => performance.now(),
  });
  const sender = new TcpSender({ host: '127.0.0.1', port });
  const format = load('sinks/statistics/lines/statsd-lines').statsdLines({});
  const output = new SendingOutput({ statistics, format, sender, log });
  const { asyncScheduler } = require('rxjs');
  load('streams/flushing')
    .flushing(() => output.flush(), FLUSH_INTERVAL, asyncScheduler)
    .subscribe();
  return { output, exposition };
}

/** A variant in its own process: makes as many calls as each message says, and replies with the CPU time per call in µs. */
async function serveSlices(kind, isDetailed, port) {
  const statistics = kind === 'none' ? new NoStatistics() : new (load('statistics/statistics').Statistics)(KEYS);
  const bare = handler(statistics, isDetailed);
  const handle = kind === 'none' ? bare : measured(bare, statistics);
  if (kind === 'sent') startOutputs(statistics, port);
  const messages = requests();
  let next = 0;
  process.on('message', async (calls) => {
    const started = process.cpuUsage();
    for (let made = 0; made < calls; made += CALLS_PER_TURN) {
      for (let index = 0; index < CALLS_PER_TURN; index += 1) {
        handle(messages[next], new Call());
        next = (next + 1) % KEYS;
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { user, system } = process.cpuUsage(started);
    process.send((user + system) / calls);
  });
}

/** The value below which this share of the values lies. */
function quantile(values, share) {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length * share)];
}

const variants = [
  ['none', 'plain', 'no statistics (baseline)'],
  ['none', 'plain', 'no statistics, another process of the same'],
  ['kept', 'plain', 'one rule for all keys, DISABLE_STATS'],
  ['sent', 'plain', 'one rule for all keys, all outputs on'],
  ['kept', 'detailed', 'detailed_metric, each key its own, DISABLE_STATS'],
  ['sent', 'detailed', 'detailed_metric, each key its own, all outputs on'],
].map(([kind, metric, name]) => ({ kind, metric, name, costs: [], ratios: [] }));

function shuffled(items) {
  return [...items]
    .map((item) => [Math.random(), item])
    .sort(([one], [other]) => one - other)
    .map(([, item]) => item);
}

/** Runs one process of each variant for ROUNDS turns. */
async function generation(port) {
  const children = variants.map(({ kind, metric }) => fork(import.meta.filename, [kind, metric, String(port)]));
  async function slice(index, calls = SLICE) {
    children[index].send(calls);
    const [cost] = await once(children[index], 'message');
    variants[index].costs.push(cost);
    return cost;
  }
  for (const [index, { costs }] of variants.entries()) {
    await slice(index, WARM_UP);
    costs.pop();
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    const costs = [];
    // In random order, so that no variant always follows the same one and its cached objects.
    for (const index of shuffled(variants.keys())) costs[index] = await slice(index);
    for (const [index, { ratios }] of variants.entries()) ratios.push(costs[index] / costs[0]);
  }
  for (const child of children) child.kill();
}

async function compare() {
  const daemon = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
  await once(daemon, 'listening');
  for (let made = 0; made < GENERATIONS; made += 1) await generation(daemon.address().port);
  for (const { name, costs, ratios } of variants) {
    const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantile(ratios, share).toFixed(2));
    const cost = quantile(costs, 0.5).toFixed(2);
    console.log(`${name.padEnd(52)} ${cost} µs  × ${middle}  (quartiles ${low} to ${high})`);
  }
  daemon.close();
}

const [kind, metric, port] = process.argv.slice(2);
if (kind === undefined) await compare();
else await serveSlices(kind, metric === 'detailed', Number(port));

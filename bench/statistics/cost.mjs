// What statistics add to a decision: the whole path from a call's bytes to its answer, with statistics as a service keeps and
// sends them, with DISABLE_STATS, and with none. Each run is a process of its own, so that none is compiled for another's
// objects; the runs take turns, and medians are shown, as the machine may be shared.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';

const require = createRequire(import.meta.url);
const load = (path) => require(`../../dist/${path}.js`);

const ROUNDS = 5;
const WARM_UP = 300_000;
const CALLS = 1_500_000;
/** Calls that arrive in one turn of the event loop. */
const TOGETHER = 200;
const KEYS = 10_000;
/** Milliseconds; ten times as often as by default, so that flushes fall into every run. */
const FLUSH_INTERVAL = 1_000;

/** Takes what is counted, and keeps nothing apart. */
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

/** A call as the door hands it in. */
class Call {
  static bytes = 0;
  listener = undefined;
  reply(message) {
    Call.bytes += message.length;
  }
  fail(status, message) {
    throw new Error(`${status}: ${message}`);
  }
  onCancel(listener) {
    this.listener = listener;
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

/** The handler of calls, over counters in memory. */
function handler(statistics, isDetailed) {
  const { Limiter } = load('limiter/limiter');
  const rule = {
    key: 'user',
    value: '',
    rateLimit: { unit: 'MINUTE', requestsPerUnit: 4_000_000_000, unlimited: false, name: '', replaces: [] },
    shadowMode: false,
    quotaMode: false,
    detailedMetric: isDetailed,
    valueToMetric: false,
    shareThreshold: false,
    metadata: undefined,
    descriptors: [],
  };
  const ruleset = load('rules/ruleset').buildRuleset([{ domain: 'bench', descriptors: [rule] }]);
  const options = {
    cacheKeyPrefix: '',
    nearLimitRatio: 0.8,
    localCacheBytes: 0,
    stopIncrementWhenOverLimit: false,
    shadowMode: false,
    quotaMode: false,
    responseHeaders: undefined,
    dynamicMetadata: false,
  };
  const path = load('streams/decisions').decisions({
    limiter: new Limiter(options, statistics),
    ruleset: () => ruleset,
    counters: new (load('sinks/counters/memory/memory-counters').MemoryCounters)({ maxKeys: 1e6, now: Date.now }),
    statistics,
    windowSpan: 0,
    windowsInFlight: 1,
    scheduler: load('sources/turn-scheduler').turnScheduler,
    onDefect: (error) => {
      throw error;
    },
  });
  path.windows$.subscribe();
  return load('grpc/rate-limit/rate-limit-service').shouldRateLimit(path.decide, statistics);
}

/** As the service does it: every call counted and timed. */
function measured(handle, statistics) {
  const methods = new Map([['/s/ShouldRateLimit', handle]]);
  const clock = load('sources/turn-clock').turnClock();
  return load('grpc/measured-methods').measuredMethods(methods, statistics, clock).get('/s/ShouldRateLimit');
}

/** Pushes to a daemon, and keeps what a scrape would show: both take every duration. */
function startOutputs(statistics, port) {
  const { Exposition } = load('sinks/statistics/exposition/exposition');
  const { Mapper } = load('sinks/statistics/exposition/mapping');
  const { builtInMapping } = load('sinks/statistics/exposition/built-in-mapping');
  const { SendingOutput } = load('sinks/statistics/sending-output');
  const { TcpSender } = load('sinks/statistics/tcp-sender');
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
  const format = load('sinks/statistics/statsd-lines').statsdLines({});
  const output = new SendingOutput({ statistics, format, sender, log });
  const { asyncScheduler } = require('rxjs');
  load('streams/flushing')
    .flushing(() => output.flush(), FLUSH_INTERVAL, asyncScheduler)
    .subscribe();
  return { output, exposition };
}

/** One run: CPU of this process in µs for each decision. */
async function run(kind, isDetailed, port) {
  const statistics = kind === 'none' ? new NoStatistics() : new (load('statistics/statistics').Statistics)(KEYS);
  const bare = handler(statistics, isDetailed);
  const handle = kind === 'none' ? bare : measured(bare, statistics);
  if (kind === 'sent') startOutputs(statistics, port);
  const messages = requests();
  let started;
  for (let made = 0; made < WARM_UP + CALLS;) {
    if (made === WARM_UP) started = process.cpuUsage();
    for (let index = 0; index < TOGETHER; index += 1, made += 1) handle(messages[made % KEYS], new Call());
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { user, system } = process.cpuUsage(started);
  return (user + system) / CALLS;
}

async function compare() {
  const daemon = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
  await once(daemon, 'listening');
  const rows = [
    ['none', 'plain', 'no statistics (baseline)'],
    ['kept', 'plain', 'one rule for all keys, DISABLE_STATS'],
    ['sent', 'plain', 'one rule for all keys, all outputs on'],
    ['kept', 'detailed', 'detailed_metric, each key its own, DISABLE_STATS'],
    ['sent', 'detailed', 'detailed_metric, each key its own, all outputs on'],
  ].map(([kind, rule, name]) => ({ kind, rule, name, costs: [] }));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { kind, rule, costs } of rows) {
      const args = [import.meta.filename, kind, rule, String(daemon.address().port)];
      const { stdout } = await promisify(execFile)(process.execPath, args);
      costs.push(Number(stdout));
    }
  }
  const median = (costs) => costs.toSorted((one, other) => one - other)[Math.floor(costs.length / 2)];
  for (const { name, costs } of rows) {
    // Within a round, where the machine is as busy for both.
    const ratio = median(costs.map((cost, round) => cost / rows[0].costs[round]));
    const range = `${Math.min(...costs).toFixed(2)} to ${Math.max(...costs).toFixed(2)}`;
    console.log(`${name.padEnd(52)} ${median(costs).toFixed(2)} µs (${range})  × ${ratio.toFixed(2)}`);
  }
  daemon.close();
}

const [kind, rule, port] = process.argv.slice(2);
if (kind === undefined) {
  await compare();
} else {
  console.log(await run(kind, rule === 'detailed', Number(port)));
  process.exit(0);
}

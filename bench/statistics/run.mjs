// The cost of statistics: of recording a call on the decision path; the longest stall of the event loop while 10,000 rules are
// flushed or scraped, and the memory that the process uses.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createRequire } from 'node:module';
import { setImmediate as nextTurn } from 'node:timers/promises';

const require = createRequire(import.meta.url);

function load(path) {
  return require(`../../dist/${path}.js`);
}

const { Statistics } = load('statistics/statistics');
const { EvenSamples } = load('statistics/even-samples');
const { Histogram } = load('statistics/histogram');
const { observedMethods } = load('grpc/observed-methods');
const { builtInMapping } = load('sinks/statistics/mapping/built-in-mapping');
const { Exposition } = load('sinks/statistics/exposition/exposition');
const { Mapper } = load('sinks/statistics/mapping/mapping');
const { processMetrics } = load('sinks/statistics/exposition/process-metrics');
const { SendingOutput } = load('sinks/statistics/senders/sending-output');
const { statsdLines } = load('sinks/statistics/lines/statsd-lines');
const { dogstatsdLines } = load('sinks/statistics/lines/dogstatsd-lines');
const { TcpSender } = load('sinks/statistics/senders/connection-sender');
const { turnClock } = load('sources/event-loop-turns');
const { serveMetrics } = load('http/serve-metrics');

const silent = { isDebug: false, debug() {}, info() {}, warn: console.warn, error: console.error };

function show(what, figure) {
  return console.log(`${what.padEnd(72)} ${figure}`);
}

function megabytes() {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1e6;
}

/** Nanoseconds per call, the best of five rounds. */
function nanoseconds(work, calls = 2_000_000) {
  let best = Infinity;
  for (let round = 0; round < 5; round += 1) {
    const begun = performance.now();
    for (let call = 0; call < calls; call += 1) work(call);
    best = Math.min(best, ((performance.now() - begun) * 1e6) / calls);
  }
  return best.toFixed(1);
}

/** In milliseconds: the longest turn of the event loop during `work`, and its total time. */
async function stalls(work) {
  let longest = 0;
  let last = performance.now();
  let isOver = false;
  function turn() {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setImmediate(turn);
  }
  await nextTurn();
  last = performance.now();
  setImmediate(turn);
  const begun = performance.now();
  await work();
  const total = performance.now() - begun;
  isOver = true;
  await nextTurn();
  return `longest stall ${longest.toFixed(1)} ms, total ${total.toFixed(0)} ms`;
}

function recording() {
  const statistics = new Statistics(0);
  const timer = statistics.timer('ratelimit_server.X.response_time');
  show('timer: record a duration, kept for /stats only', `${nanoseconds((call) => timer.record(call % 50))} ns`);
  timer.addRecorder(new EvenSamples(1_000));
  timer.addRecorder(
    new Histogram(
      builtInMapping(false).mappings.find(({ observer }) => observer.kind === 'histogram').observer.buckets,
      0.001,
    ),
  );
  show(
    'timer: record a duration, kept for push and pull as well',
    `${nanoseconds((call) => timer.record(call % 50))} ns`,
  );

  const pending = { cancel() {} };
  const transport = { reply() {}, fail() {}, onCancel() {}, receivedAt: performance.now() };
  const answer = new Uint8Array(8);
  function handle(_message, call) {
    call.onCancel(pending);
    call.reply(answer);
  }
  const methods = new Map([['/s/M', handle]]);
  const bare = methods.get('/s/M');
  function timed(clock) {
    return observedMethods(methods, { statistics, now: clock }).get('/s/M');
  }
  const own = timed(() => performance.now());
  const shared = timed(turnClock());
  show('a call that does nothing', `${nanoseconds(() => bare(answer, transport))} ns`);
  show(
    'the same, counted and timed, reading the clock twice per call',
    `${nanoseconds(() => own(answer, transport))} ns`,
  );
  show(
    'the same, reading the clock once for all calls of a turn',
    `${nanoseconds(() => shared(answer, transport))} ns`,
  );
}

async function flushing(rules) {
  const statistics = new Statistics(0);
  for (let rule = 0; rule < rules; rule += 1) statistics.rule(`domain.key_${rule}.path_x`);
  function hit() {
    for (const rule of statistics.rules) {
      rule.totalHits += 3;
      rule.withinLimit += 2;
      rule.overLimit += 1;
      rule.nearLimit += 1;
    }
  }
  const daemon = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
  await once(daemon, 'listening');
  for (const [name, format] of [
    ['statsd', statsdLines({ stage: 'prod' })],
    ['DogStatsD lines', dogstatsdLines({ stage: 'prod' }, [])],
  ]) {
    const sender = new TcpSender({ host: '127.0.0.1', port: daemon.address().port });
    const output = new SendingOutput({ statistics, format, sender, log: silent });
    const what = `flush of ${rules} rules, 4 statistics of each moved, as ${name}`;
    hit();
    show(`${what}, first`, await stalls(() => output.flush()));
    hit();
    show(`${what}, second`, await stalls(() => output.flush()));
    show(`${what}, nothing moved`, await stalls(() => output.flush()));
    output.close();
  }
  daemon.close();
}

async function scraping(rules) {
  const before = megabytes();
  const statistics = new Statistics(0);
  for (let rule = 0; rule < rules; rule += 1) {
    const each = statistics.rule(`domain.key_${rule}.path_x`);
    each.totalHits += 3;
    each.withinLimit += 2;
    each.overLimit += 1;
    each.nearLimit += 1;
  }
  const counted = megabytes();
  const exposition = new Exposition({
    statistics,
    mapper: new Mapper(builtInMapping(false)),
    labels: {},
    reserved: new Set(),
    onConflict() {},
    now: () => performance.now(),
  });
  async function* page() {
    yield* exposition.page();
    yield await ofProcess.write();
  }
  const listening = await serveMetrics({ host: '127.0.0.1', port: 0, path: '/metrics', page, log: silent });
  const url = `http://127.0.0.1:${listening.address.port}/metrics`;
  let bytes = 0;
  // Without decoding, so that the work of the scraper is not measured.
  const { get } = await import('node:http');
  function scrape(encoding) {
    return new Promise((resolve, reject) => {
      get(url, { headers: { 'Accept-Encoding': encoding }, agent: false }, (response) => {
        bytes = 0;
        response.on('data', (chunk) => (bytes += chunk.length)).once('end', resolve);
      }).once('error', reject);
    });
  }
  for (const [which, encoding] of [
    ['first', 'identity'],
    ['second', 'identity'],
    ['gzip', 'gzip'],
  ]) {
    const figures = await stalls(() => scrape(encoding));
    show(`scrape of ${rules} rules, ${4 * rules} series, ${which}`, `${figures}, ${(bytes / 1e6).toFixed(2)} MB`);
  }
  show(
    `heap of ${rules} rules: counted, mapped`,
    `${(counted - before).toFixed(1)} MB, ${(megabytes() - counted).toFixed(1)} MB`,
  );
  await listening.close();
}

/** The memory used by a million different values of a request under a bound of 10,000 keys. */
function distinctValues() {
  const statistics = new Statistics(10_000);
  const before = megabytes();
  const heaps = [];
  for (let value = 0; value < 1_000_000; value += 1) {
    if (value % 250_000 === 0) heaps.push((megabytes() - before).toFixed(1));
    statistics.runtimeRule(`domain.user_${value}`, 'domain.user').totalHits += 1;
  }
  heaps.push((megabytes() - before).toFixed(1));
  show(
    'heap while 1,000,000 distinct values arrive, every 250,000',
    `${heaps.join(' → ')} MB, ${statistics.rules.length} kept`,
  );
}

const ofProcess = processMetrics({});
recording();
distinctValues();
for (const rules of [2_500, 10_000]) {
  await flushing(rules);
  await scraping(rules);
}
process.exit(0);

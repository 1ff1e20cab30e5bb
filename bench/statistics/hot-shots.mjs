// The DogStatsD output compared with hot-shots: the cost of a line, and what hot-shots loses where our tests require that nothing is
// lost. hot-shots is no dependency: the first argument is the folder in which it is installed. Each variant of the cost runs in its own
// process, and the processes take turns in random order.
import { fork } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';

const require = createRequire(import.meta.url);
const { packets } = require('../../dist/sinks/statistics/senders/framing.js');
const { dogstatsdLines } = require('../../dist/sinks/statistics/lines/dogstatsd-lines.js');

const [folder, kind] = process.argv.slice(2);
if (folder === undefined) throw new Error('name the folder in which hot-shots is installed');
const { StatsD } = createRequire(`${resolve(folder)}/`)('hot-shots');

const SERIES = 10_000;
const BATCH = 256;
const ROUNDS = 40;
/** As in our UDP sender. */
const MAX_DATAGRAM = 1432;
/** Without these, variables of the environment add tags and statistics of the client. */
const BARE = { includeDataDogTags: false, datadog: false, includeDatadogTelemetry: false };
const TAGS = { az: 'eu1', stage: 'prod' };

function pack(lines) {
  return [...packets(lines, MAX_DATAGRAM)].map(({ bytes }) => bytes);
}

/** Each makes the datagrams of one batch of counters. */
const formers = {
  ours() {
    const format = dogstatsdLines(TAGS, []);
    return (names) => pack(names.map((name) => format.counter(name, {}, 3)));
  },
  forms() {
    const client = new StatsD({ mock: true, ...BARE });
    return (names) => {
      client.mockBuffer = [];
      for (const name of names) client.increment(name, 3, TAGS);
      return pack(client.mockBuffer);
    };
  },
  packs() {
    let written = [];
    // Only a stream that takes everything at once lets us send the datagrams, and keep what is not accepted.
    const stream = {
      on() {},
      emit() {},
      removeListener() {},
      write(text, done) {
        written.push(Buffer.from(text.slice(0, -1)));
        done();
      },
    };
    const client = new StatsD({ protocol: 'stream', stream, maxBufferSize: MAX_DATAGRAM, ...BARE });
    return (names) => {
      written = [];
      for (const name of names) client.increment(name, 3, TAGS);
      client.flush();
      return written;
    };
  },
};

/** A variant in its own process: forms 10,000 lines for each message, and replies with the CPU time per line in µs. */
function serveRounds() {
  const form = formers[kind]();
  process.on('message', () => {
    // New strings, as each flush joins them from a rule's name and a statistic's.
    const names = Array.from({ length: SERIES }, (_, index) => `ratelimit.service.rate_limit.domain.key_${index}.hits`);
    const before = process.cpuUsage();
    for (let at = 0; at < SERIES; at += BATCH) form(names.slice(at, at + BATCH));
    const { user, system } = process.cpuUsage(before);
    process.send((user + system) / SERIES);
  });
}

async function costs() {
  const made = new Set(Object.values(formers).map((make) => make()(['a.b', 'c.d']).join()));
  if (made.size > 1) throw new Error(`the variants make different datagrams: ${[...made].join(' ')}`);
  const variants = [
    ['ours', 'our lines, our datagrams'],
    ['forms', 'lines of hot-shots (mock), our datagrams'],
    ['packs', "lines and datagrams of hot-shots (protocol: 'stream')"],
  ].map(([name, title]) => ({ title, costs: [], child: fork(import.meta.filename, [folder, name]) }));
  for (let round = -5; round < ROUNDS; round += 1) {
    for (const variant of variants.toSorted(() => Math.random() - 0.5)) {
      variant.child.send('round');
      const [cost] = await once(variant.child, 'message');
      if (round >= 0) variant.costs.push(cost);
    }
  }
  const medians = variants.map((variant) => variant.costs.toSorted((one, other) => one - other)[ROUNDS / 2]);
  for (const [index, { title, child }] of variants.entries()) {
    child.kill();
    const [ours, median] = [medians[0], medians[index]];
    console.log(`${title.padEnd(56)} ${median.toFixed(2)} µs per line  × ${(median / ours).toFixed(1)}`);
  }
}

function linesOf(call) {
  const client = new StatsD({ mock: true, ...BARE });
  call(client);
  return client.mockBuffer;
}

function formed() {
  const durations = linesOf((client) => {
    for (let call = 0; call < 1_000; call += 1) client.timing('t', call, 0.25);
  });
  console.log(`1,000 durations that are already a sample, to be marked |@0.25: ${durations.length} lines`);
  const merged = linesOf((client) => {
    for (const user of ['a@b', 'a#b', 'a_b']) client.increment('hits', 1, { user });
  });
  console.log(`the tag values a@b, a#b and a_b: ${merged.join('  ')}`);
}

/** A receiver that takes two packets and has no room for the third. */
async function partial() {
  const arrived = [];
  const stream = new Writable({
    decodeStrings: false,
    autoDestroy: false,
    write: (text, _, done) => done(arrived.length === 2 ? new Error('full') : void arrived.push(text)),
  });
  const client = new StatsD({ protocol: 'stream', stream, maxBufferSize: MAX_DATAGRAM, ...BARE, errorHandler() {} });
  let confirmed = 0;
  for (let index = 0; index < 300; index += 1) {
    client.increment(`name.of.a.counter.${index}`, 1, (error) => (confirmed += error === undefined ? 1 : 0));
  }
  client.flush();
  await wait(10);
  const lines = arrived.join('').trimEnd().split('\n').length;
  console.log(`300 counters to a receiver with little room: ${confirmed} confirmed, ${lines} arrived`);
}

/** Three flushes before a process listens on the port, one after that. */
async function refused() {
  const probe = createSocket('udp4').bind(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  let errors = 0;
  function errorHandler() {
    errors += 1;
  }
  const client = new StatsD({ host: '127.0.0.1', port, maxBufferSize: MAX_DATAGRAM, ...BARE, errorHandler });
  async function hitAndFlush() {
    client.increment('hits', 1);
    await new Promise((done) => client.flush(done));
    await wait(50);
  }
  for (let flush = 0; flush < 3; flush += 1) await hitAndFlush();
  const receiver = createSocket('udp4').bind(port, '127.0.0.1');
  await once(receiver, 'listening');
  let received = 0;
  receiver.on('message', () => (received += 1));
  await hitAndFlush();
  console.log(`4 hits over UDP, the port closed for the first 3: ${errors} errors, ${received} arrived`);
  receiver.close();
}

if (kind === undefined) {
  await costs();
  formed();
  await partial();
  await refused();
  process.exit(0);
} else serveRounds();

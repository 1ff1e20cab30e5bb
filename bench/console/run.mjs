// How quick the console is, and what it costs the service: 10,000 rules in the built service, in Chromium. See README.md.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
const RULES = 10_000;
/** Calls per second of the rules, all of which are hit in turn. */
const CALLS = 1_000;
const READERS = 50;
const ROUNDS = 5;
/** Seconds for which CPU time is counted. */
const COUNTED = 30;

const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'));
mkdirSync(join(folder, 'config'));
const rules = Array.from(
  { length: RULES },
  (_, rule) => `  - { key: user, value: u${rule}, rate_limit: { unit: minute, requests_per_unit: ${rule + 1} } }\n`,
);
writeFileSync(join(folder, 'config/shop.yaml'), `domain: shop\ndescriptors:\n${rules.join('')}`);
const weir = spawn(process.execPath, [join(DIST, 'main.js')], {
  env: {
    PATH: process.env.PATH,
    RUNTIME_ROOT: folder,
    BACKEND_TYPE: 'memory',
    USE_STATSD: 'false',
    HOST: '127.0.0.1',
    GRPC_HOST: '127.0.0.1',
    DEBUG_HOST: '127.0.0.1',
    PORT: '0',
    GRPC_PORT: '0',
    DEBUG_PORT: '0',
  },
  stdio: ['ignore', 'ignore', 'pipe'],
});
const browser = await chromium.launch({
  executablePath: execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim(),
});
const calls = new AbortController();
const readers = new AbortController();
try {
  const { http, debug } = await serving();
  const pages = `http://${debug}/console/`;
  const calling = callAll(http);

  const [texts, events] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    texts.push(await shows(`http://${debug}/`, '/console/'));
    events.push(await shows(`${pages}#/live`, 'Within limits'));
  }
  print('CPU at a quarter: first event on Live', `${median(events)} ms`);
  print('the same for a page of text', `${median(texts)} ms`);

  const { tasks, rows } = await scroll(pages);
  print(
    'scrolling the rules, 100 px a frame',
    `${rows} rows, ${tasks.length} tasks over 50 ms, the longest ${Math.max(0, ...tasks)} ms`,
  );

  const reading = [readEvents(debug)];
  const one = await cpuTime();
  for (let reader = 1; reader < READERS; reader += 1) reading.push(readEvents(debug));
  const all = await cpuTime();
  print('CPU of the service with one reader of events', `${(one / COUNTED / 10).toFixed(2)} % of a core`);
  print(`with ${READERS}`, `${(all / COUNTED / 10).toFixed(2)} % of a core`);

  calls.abort();
  readers.abort();
  await Promise.allSettled([calling, ...reading]);
} finally {
  await browser.close();
  weir.kill();
  rmSync(folder, { recursive: true });
}

/** The addresses of the listeners, when the service serves. */
async function serving() {
  for await (const line of createInterface(weir.stderr)) {
    const addresses = /msg="serving".* http=(?<http>\S+) .*debug=(?<debug>\S+)/.exec(line);
    if (addresses !== null) return addresses.groups;
  }
  throw new Error('the service has not started: build it first');
}

/** Calls with each rule in turn, until it is told to end. */
async function callAll(address) {
  for (let call = 0; !calls.signal.aborted; call += 1) {
    const descriptors = [{ entries: [{ key: 'user', value: `u${call % RULES}` }] }];
    const body = JSON.stringify({ domain: 'shop', descriptors });
    await fetch(`http://${address}/json`, { method: 'POST', body }).then((response) => response.text());
    await sleep(1_000 / CALLS);
  }
}

/** Milliseconds from the request for a page until it shows a text. */
async function shows(address, text) {
  const page = await browser.newPage();
  const client = await page.context().newCDPSession(page);
  await client.send('Emulation.setCPUThrottlingRate', { rate: 4 });
  const start = performance.now();
  await page.goto(address, { waitUntil: 'commit' });
  await page.getByText(text).first().waitFor();
  const elapsed = Math.round(performance.now() - start);
  await page.close();
  return elapsed;
}

function median(values) {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
}

/** Scrolls from the first rule to the last: the lengths of the tasks over 50 ms, and the number of rows. */
async function scroll(address) {
  const page = await browser.newPage({ viewport: { width: 1_100, height: 720 } });
  await page.goto(`${address}#/rules`);
  await page.getByRole('option').first().waitFor();
  const result = await page.evaluate(async () => {
    const lengths = [];
    const observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) lengths.push(Math.round(duration));
    });
    observer.observe({ type: 'longtask' });
    const list = document.querySelector('.list');
    const end = list.scrollHeight - list.clientHeight;
    while (list.scrollTop < end - 1) {
      list.scrollTop += 100;
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    const last = document.querySelector('[role=option]:last-of-type').getAttribute('aria-posinset');
    return { tasks: lengths, rows: last };
  });
  await page.close();
  return result;
}

/** Reads the events as a console does, and forgets them, until it is told to end. */
async function readEvents(address) {
  const response = await fetch(`http://${address}/api/events`, { signal: readers.signal });
  await response.body.pipeTo(new WritableStream());
}

/** CPU time of all threads of the service in the time counted, in milliseconds. */
async function cpuTime() {
  await sleep(2_000);
  const before = ranFor();
  await sleep(COUNTED * 1_000);
  return ranFor() - before;
}

function ranFor() {
  const tasks = `/proc/${weir.pid}/task`;
  const times = readdirSync(tasks).map((task) =>
    Number(readFileSync(`${tasks}/${task}/schedstat`, 'latin1').split(' ')[0]),
  );
  return times.reduce((sum, time) => sum + time, 0) / 1e6;
}

function print(what, value) {
  console.log(`${what.padEnd(52)} ${value}`);
}

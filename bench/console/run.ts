// How quick the console is, and what it costs the service: 10,000 rules in the built service, in Chromium. See
// README.md.
import { setTimeout as sleep } from 'node:timers/promises';
import { TestBrowser } from '../../test/support/clients/browser';
import { RuleFolder } from '../../test/support/data/rule-folder';
import { WeirProcess } from '../../test/support/processes/weir-process';
import { median } from '../suite/compare';
import { CpuTimes } from '../suite/processes/cpu-times';

const RULES = 10_000;
/** Calls per second of the rules, all of which are hit in turn. */
const CALLS = 1_000;
const READERS = 50;
const ROUNDS = 5;
/** Seconds for which CPU time is counted. */
const COUNTED = 30;

async function main(): Promise<void> {
  const rules = Array.from(
    { length: RULES },
    (_, rule) => `  - { key: user, value: u${rule}, rate_limit: { unit: minute, requests_per_unit: ${rule + 1} } }\n`,
  );
  await using folder = await RuleFolder.with({ 'shop.yaml': `domain: shop\ndescriptors:\n${rules.join('')}` });
  await using weir = await WeirProcess.start({ env: { ...folder.env, BACKEND_TYPE: 'memory' } });
  await using browser = await TestBrowser.start();
  const debug = `http://127.0.0.1:${weir.ports.debug}`;
  const over = new AbortController();
  const calling = callAll(weir, over.signal);

  const [paints, texts, events]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    paints.push(await firstPaint(browser, `${debug}/console/#/live`));
    texts.push(await timeUntil(browser, `${debug}/`, '/console/'));
    events.push(await timeUntil(browser, `${debug}/console/#/live`, 'Calls over gRPC'));
  }
  print('first paint of Live', `${Math.round(median(paints))} ms`);
  print('CPU at a quarter: first event on Live', `${Math.round(median(events))} ms`);
  print('the same for a page of text', `${Math.round(median(texts))} ms`);

  const { tasks, rows } = await scroll(browser, `${debug}/console/#/rules`);
  print(
    'scrolling the rules, 100 px a frame',
    `${rows} rows, ${tasks.length} tasks over 50 ms, the longest ${Math.max(0, ...tasks)} ms`,
  );

  const reading = [readEvents(debug, over.signal)];
  print('CPU of the service with one reader of events', await cpuOf(weir));
  for (let reader = 1; reader < READERS; reader += 1) reading.push(readEvents(debug, over.signal));
  print(`with ${READERS}`, await cpuOf(weir));
  over.abort();
  await Promise.allSettled([calling, ...reading]);
}

/** Calls with each rule in turn. */
async function callAll(weir: WeirProcess, over: AbortSignal): Promise<void> {
  for (let call = 0; !over.aborted; call += 1) {
    const descriptors = [{ entries: [{ key: 'user', value: `u${call % RULES}` }] }];
    const body = JSON.stringify({ domain: 'shop', descriptors });
    await weir.http('/json', { method: 'POST', body }).then((response) => response.text());
    await sleep(1_000 / CALLS);
  }
}

/** Runs in the page. */
const PAINT = `new Promise((resolve) => {
  new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime)).observe({ type: 'paint', buffered: true });
})`;

/** Milliseconds from the request for a page until the browser paints something of it. */
async function firstPaint(browser: TestBrowser, address: string): Promise<number> {
  const page = await browser.open(address);
  const elapsed = await page.evaluate<number>(PAINT);
  await browser.closePages();
  return elapsed;
}

/** Milliseconds from the request for a page until it shows a text. */
async function timeUntil(browser: TestBrowser, address: string, text: string): Promise<number> {
  const page = await browser.open('about:blank');
  const client = await page.context().newCDPSession(page);
  await client.send('Emulation.setCPUThrottlingRate', { rate: 4 });
  const start = performance.now();
  await page.goto(address, { waitUntil: 'commit' });
  await page.getByText(text).first().waitFor();
  const elapsed = performance.now() - start;
  await browser.closePages();
  return elapsed;
}

/** Runs in the page: scrolls from the first rule to the last, and observes the tasks over 50 ms. */
const SCROLL = `(async () => {
  const tasks = [];
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) tasks.push(Math.round(duration));
  });
  observer.observe({ type: 'longtask' });
  const list = document.querySelector('.list');
  const end = list.scrollHeight - list.clientHeight;
  while (list.scrollTop < end - 1) {
    list.scrollTop += 100;
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
  return { tasks, rows: document.querySelector('[role=option]:last-of-type').getAttribute('aria-posinset') };
})()`;

/** The lengths of the tasks over 50 ms while the rules are scrolled, and the number of rows. */
async function scroll(browser: TestBrowser, address: string) {
  const page = await browser.open(address, { viewport: { width: 1_100, height: 720 } });
  await page.getByRole('option').first().waitFor();
  const result = await page.evaluate<{ readonly tasks: readonly number[]; readonly rows: string }>(SCROLL);
  await browser.closePages();
  return result;
}

/** Reads the events as a console does, and forgets them. */
async function readEvents(debug: string, over: AbortSignal): Promise<void> {
  const response = await fetch(`${debug}/api/events`, { signal: over });
  await response.body!.pipeTo(new WritableStream());
}

/** What the service uses of a core in the time counted. */
async function cpuOf({ pid }: WeirProcess): Promise<string> {
  await sleep(2_000);
  const before = new CpuTimes().of([pid!]);
  await sleep(COUNTED * 1_000);
  const microseconds = new CpuTimes().of([pid!]) - before;
  return `${(microseconds / COUNTED / 1e4).toFixed(2)} % of a core`;
}

function print(what: string, value: string): void {
  console.log(`${what.padEnd(52)} ${value}`);
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);

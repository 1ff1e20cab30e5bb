import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';
import { TestBrowser } from '../support/clients/browser';
import { freePorts } from '../support/processes/free-ports';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { Shop } from './shop';

const RULES = `domain: shop
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 1, name: per-user } }
  - { key: plan, shadow_mode: true, rate_limit: { unlimited: true } }
`;

let browser: TestBrowser;
beforeAll(async () => (browser = await TestBrowser.start()));
afterEach(() => browser.closePages());
afterAll(() => browser[Symbol.asyncDispose]());

/** Waits for the first event. */
function connected(page: Page): Promise<void> {
  const health = page.getByRole('region', { name: 'Health' });
  return health.getByText(/^(?:All is well|Impaired|Failing)$/).waitFor();
}

function consoleOf({ weir }: Shop): string {
  return `http://127.0.0.1:${weir.ports.debug}/console/`;
}

/** A caller, and a key of rules. */
const LONG_NAME = `a-name-of-60-characters-${'x'.repeat(30)}-ends`;

const SHOWN_RULES = `domain: shop
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 1, name: per-user } }
  - { key: plan, shadow_mode: true, rate_limit: { unlimited: true } }
  - { key: ${LONG_NAME}, rate_limit: { unit: day, requests_per_unit: 1 } }
  - key: several
    rate_limits:
      - { unit: year, requests_per_unit: 50 }
      - { unit: hour, requests_per_unit: 40, algorithm: token_bucket, burst: 39 }
`;
const MANY_RULES = `domain: shop\ndescriptors:\n${Array.from(
  { length: 10_000 },
  (_, number) => `  - { key: user, value: u${number}, rate_limit: { unit: minute, requests_per_unit: ${number} } }`,
).join('\n')}\n`;

/** Each page, and what it shows when all of it is there. */
const PAGES: Readonly<Record<string, string>> = {
  '#/live': 'What changed',
  '#/callers': 'Limited calls of the last 10 minutes',
  '#/rules?rule=shop.user': 'Look up a counter',
  '#/rules?view=rejected': 'invalid rate limit unit',
  '#/rules?view=changes': 'per-user',
  '#/explain?domain=shop&descriptor=user%3Dann&descriptor=several%3Dann': 'Count 5, then 6',
  '#/callers?domain=shop&descriptor=several%3Dann': 'of 39 tokens',
  '#/activity': 'Rules rejected',
  '#/settings?setting=DEBUG_PORT': 'Values: whole number',
  '#/help?of=docs/runbook.md%23weirstoreaway': 'restore the store',
  '#/none': 'There is no such page.',
};

/** Milliseconds. axe looks at every element of all pages. */
const LONG = 1_200_000;

/** In the page: elements that are wider than what they are in, and words in tables that are broken. */
const TOO_WIDE = `(() => {
  const found = [];
  function clips(element) { return getComputedStyle(element).overflowX !== 'visible'; }
  if (document.documentElement.scrollWidth > innerWidth) found.push('the page is wider than its window');
  for (const region of document.querySelectorAll('.scroll')) {
    if (region.scrollWidth > region.clientWidth + 1) found.push('a table is wider than its column: ' + region.ariaLabel);
  }
  for (const card of document.querySelectorAll('.card')) {
    if (card.scrollWidth > card.clientWidth + 1) found.push('a card has more than it shows: ' + card.ariaLabel);
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
    if (text.data.trim() === '' || text.parentElement.closest('option, noscript, svg, pre') !== null) continue;
    const column = text.parentElement.closest('td, th, dt, dd, li, p, h1, h2, h3, figcaption, section, div, header, body');
    let isClipped = false;
    for (let each = text.parentElement; each !== column.parentElement; each = each.parentElement) isClipped ||= clips(each);
    const range = document.createRange();
    range.selectNode(text);
    if (!isClipped && range.getBoundingClientRect().right > column.getBoundingClientRect().right + 1) {
      found.push('a text is wider than its column: ' + text.data.slice(0, 60));
    }
    if (text.parentElement.closest('td, th') === null) continue;
    for (const { index, 0: word } of text.data.matchAll(/\\b[A-Za-z0-9]{1,20}\\b/g)) {
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
      if (lines.size > 1) found.push('a word is broken: ' + word);
    }
  }
  return found;
})()`;

const WIDTHS = [390, 768, 1024, 1440, 1920];

/** Looks at pages in each width, and in both schemes of colours. */
async function expectReadable(shop: Shop, pages: Readonly<Record<string, string>>): Promise<void> {
  for (const [address, text] of Object.entries(pages)) {
    const page = await browser.open(consoleOf(shop) + address, { colorScheme: 'dark' });
    await connected(page);
    await page.getByText(text).first().waitFor();
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      expect([address, width, await page.evaluate(TOO_WIDE)]).toEqual([address, width, []]);
      for (const colorScheme of ['dark', 'light'] as const) {
        await page.emulateMedia({ colorScheme });
        // The schemes differ in colours only.
        const rules = colorScheme === 'dark' ? {} : { runOnly: ['color-contrast'] };
        const { violations } = await new AxeBuilder({ page })
          .options({ resultTypes: ['violations'], ...rules })
          .analyze();
        const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
        expect([address, width, colorScheme, found]).toEqual([address, width, colorScheme, []]);
      }
    }
    await page.context().close();
  }
  expect(browser.errors).toEqual([]);
}

it(
  'every page is accessible and nowhere too wide, with long names, limited callers and rejected rules',
  async () => {
    await using shop = await Shop.start(
      { env: { BACKEND_TYPE: 'memory' } },
      SHOWN_RULES.replace(', name: per-user', ''),
    );
    await shop.rules.write('shop.yaml', SHOWN_RULES);
    await shop.weir.line(/changes="1 rule changed/);
    for (const user of ['ann', LONG_NAME]) await shop.hit(user, 5);
    await shop.client.shouldRateLimit('shop', [`${LONG_NAME}=${LONG_NAME}`], 5);
    await shop.client.shouldRateLimit('shop', ['several=ann'], 5);
    await shop.rules.write('shop.yaml', SHOWN_RULES.replace('day', 'dai'));
    await shop.weir.line(/invalid rate limit unit/);
    await expectHistory(shop);
    await expectReadable(shop, PAGES);
  },
  LONG,
);

/** Waits until the service has taken a sample of its numbers. */
function expectHistory({ weir }: Shop): Promise<boolean> {
  return weir.until('a sample', async () => {
    const response = await fetch(`http://127.0.0.1:${weir.ports.debug}/api/history`);
    return ((await response.json()) as { readonly times: readonly number[] }).times.length > 0;
  });
}

it(
  'pages are accessible and nowhere too wide with 10,000 rules and without calls',
  async () => {
    await using shop = await Shop.start({ env: { BACKEND_TYPE: 'memory' } }, MANY_RULES);
    await expectReadable(shop, {
      '#/live': 'None in the last seconds.',
      '#/callers': 'None, or OFFENDERS_SIZE is 0.',
      '#/rules?rule=shop.user_u77': 'Look up a counter',
      '#/explain?domain=shop&descriptor=user%3Du77': 'within the limit of 77',
      '#/callers?domain=shop&descriptor=user%3Du77': '77 a minute',
    });
  },
  LONG,
);

it(
  'a store that is away is red on top of every page, with what to do, and pages stay accessible and nowhere too wide',
  async () => {
    await using redis = await RedisProcess.start();
    const env = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address };
    const brief = '  - { key: brief, rate_limit: { unit: second, requests_per_unit: 1 } }\n';
    await using shop = await Shop.start({ env }, SHOWN_RULES + brief);
    await shop.client.shouldRateLimit('shop', ['brief=ann'], 5);
    await redis.crash();
    await expect(shop.hit('ann')).rejects.toThrow(/store|connect/i);
    const page = await browser.open(`${consoleOf(shop)}#/settings`);
    const health = page.getByRole('region', { name: 'Health' });
    await health.getByRole('status').getByText('Failing').waitFor();
    await health.getByText(/^since \d\d:\d\d:\d\d, /).waitFor();
    await health.getByRole('link', { name: 'restore the store or the network to it' }).click();
    await page.getByRole('heading', { name: 'WeirStoreAway' }).waitFor();
    await page.context().close();
    const live = await browser.open(consoleOf(shop));
    await live.getByText(/^calls failed \(policy error\), unless a rule has its own policy$/).waitFor();
    // A new second has begun, but nothing passes.
    await live.getByRole('row').filter({ hasText: 'brief=ann' }).getByText('not known').waitFor();
    await live.context().close();
    await expectReadable(shop, {
      '#/live': 'ongoing',
      '#/explain?domain=shop&descriptor=user%3Dann': 'the call would fail',
    });
  },
  LONG,
);

it(
  'Fleet shows all instances on one page, what differs between them, and one that is gone',
  async () => {
    const ports = await freePorts(3);
    const peers = ports.map((port) => `127.0.0.1:${port}`);
    function instance(port: number, rules: string, env: Readonly<Record<string, string>> = {}): Promise<Shop> {
      const common = { BACKEND_TYPE: 'memory', DEBUG_PORT: String(port), OPERATOR_PEERS: peers.join() };
      return Shop.start({ env: { ...common, ...env } }, rules);
    }
    await using one = await instance(ports[0], SHOWN_RULES);
    await using other = await instance(ports[1], MANY_RULES, { NEAR_LIMIT_RATIO: '0.5' });
    await using gone = await instance(ports[2], SHOWN_RULES);
    await gone.hit(LONG_NAME, 5);
    const page = await browser.open(`${consoleOf(one)}#/fleet`);
    await page.getByText('3 instances', { exact: true }).waitFor();
    await page.getByText(/^\S+ has other rules and 1 other setting, since it started at /).waitFor();
    const setting = page.getByRole('row').filter({ hasText: 'NEAR_LIMIT_RATIO' });
    expect(await setting.locator('.differing').allInnerTexts()).toEqual(['≠ 0.5']);
    const row = page.getByRole('row').filter({ hasText: peers[1]! }).first();
    expect(await row.locator('.unequal').allInnerTexts()).toEqual([expect.stringMatching(/^≠ /)]);
    const chart = page.getByRole('slider', { name: /^Limited share of hits, %, by instance: / });
    await chart.waitFor();
    expect((await chart.getAttribute('aria-label'))!.match(/: (?:no values|[^;]* now)/g)).toHaveLength(3);
    await page.getByLabel('Instances shown').selectOption(peers[1]!);
    await page.goto(page.url().replace('fleet', 'live'));
    await page.getByText(/^Only \S+, 127\.0\.0\.1:/).waitFor();
    await page.getByRole('region', { name: 'Busiest rules' }).getByText('of the instance that answers').waitFor();
    await page.route(/\/api\/fleet/, async (route) => {
      const response = await route.fetch();
      const fleet = (await response.json()) as { readonly instances: readonly { health: { store: object } | null }[] };
      const store = { state: 'red', policy: 'allow', servers: [{ server: 'redis:6379', store: 'main', state: 'red' }] };
      Object.assign(fleet.instances[1]!.health!.store, store);
      await route.fulfill({ response, json: fleet });
    });
    await page.getByText('calls passed without limits (policy allow), unless a rule has its own policy').waitFor();
    await page.unroute(/\/api\/fleet/);
    await page.goto(page.url().replace(/#.*/, '#/fleet'));
    gone.weir.signal('SIGKILL');
    await page.getByText('3 instances, of which 1 does not answer').waitFor();
    await page.getByRole('row').filter({ hasText: peers[2]! }).getByText('does not answer').waitFor();
    await page.getByRole('region', { name: 'Health' }).getByRole('status').getByText('Impaired').waitFor();
    await page.context().close();
    await other.hit();
    await expectReadable(one, { '#/fleet': 'does not answer' });
  },
  LONG,
);

describe('a stream', () => {
  it('that is silent is lost, and found again; when the service stops, the page says so', async () => {
    await using shop = await Shop.start({}, RULES);
    const page = await browser.open(consoleOf(shop));
    await connected(page);
    shop.weir.signal('SIGSTOP');
    await page.getByRole('status').getByText('The numbers are old').waitFor();
    await page.getByRole('region', { name: 'Health' }).getByText('Not known').waitFor();
    shop.weir.signal('SIGCONT');
    await connected(page);
    shop.weir.signal('SIGTERM');
    await page.getByText('The numbers are old: the service stops').waitFor();
    expect(await shop.weir.exited).toBe(0);
  });

  it('is closed while the page is hidden', async () => {
    await using shop = await Shop.start({}, RULES);
    const page = await browser.open(consoleOf(shop));
    await connected(page);
    async function become(isHidden: boolean): Promise<void> {
      await page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`);
    }
    let streams = 0;
    page.on('request', (each) => (streams += Number(each.url().endsWith('/api/events'))));
    const closed = page.waitForEvent('requestfailed', (each) => each.url().endsWith('/api/events'));
    await become(true);
    await closed;
    const opened = page.waitForResponse((each) => each.url().endsWith('/api/events'));
    await become(false);
    await opened;
    expect(streams).toBe(1);
  });
});

const IMAGE = '<img src=x onerror=alert(1)>';
const HOSTILE = `${IMAGE}\u202eab\u0007`;

it('hostile and very long texts of rules and callers stay texts, and are shown in their places', async () => {
  const value = JSON.stringify(HOSTILE).replace('\u202e', String.raw`\u202e`);
  const rules = `domain: "${IMAGE}"\ndescriptors:
  - { key: user, value: ${value}, rate_limit: { unit: day, requests_per_unit: 1, name: ${value} } }
  - { key: user, value: "${'x'.repeat(1_000_000)}", rate_limit: { unit: day, requests_per_unit: 1 } }\n`;
  await using shop = await Shop.start({}, rules);
  for (let call = 0; call < 3; call += 1) {
    await shop.client.shouldRateLimit(IMAGE, [`user=${HOSTILE}`]);
    await shop.client.shouldRateLimit(IMAGE, [`user=${'x'.repeat(250_000)}`]);
  }
  const query = String(new URLSearchParams({ domain: IMAGE, descriptor: `user=${HOSTILE}` }));
  const SHOWN = `${IMAGE}\\u202eab\\u0007`;
  for (const [address, text] of [
    ['#/live', `user=${SHOWN}`],
    ['#/rules', SHOWN],
    [`#/explain?${query}`, `user=${SHOWN}`],
    [`#/callers?${query}`, '2 left'],
  ] as const) {
    const page = await browser.open(consoleOf(shop) + address);
    if (text !== '2 left') await page.getByText(text).first().waitFor();
    else await page.getByText('3 of 1', { exact: true }).waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect((await page.locator('main').innerText()).length).toBeLessThan(10_000);
  }
  expect(browser.errors).toEqual([]);
});

it('10,000 rules are a list of the rows that are visible, and are searched and scrolled', async () => {
  await using shop = await Shop.start({}, MANY_RULES);
  const page = await browser.open(`${consoleOf(shop)}#/rules`);
  const list = page.getByRole('listbox');
  await list.focus();
  await page.keyboard.press('End');
  await page.getByRole('option', { selected: true }).getByText('u9999').waitFor();
  expect(await page.getByRole('option').count()).toBeLessThan(60);
  await page.evaluate("document.querySelector('.list').scrollTop = 40 * 5000");
  await page.getByRole('option').getByText('u5000', { exact: true }).waitFor();
  expect(await page.getByRole('option').count()).toBeLessThan(60);
  await page.getByLabel('Search').fill('u123');
  await page.getByText('11 shown').waitFor();
});

/** A proxy that has the listener below a path, which it removes. */
async function proxyTo(port: number, prefix: string): Promise<Disposable & { readonly port: number }> {
  const server = createServer((incoming, response) => {
    const { method, headers, url = '' } = incoming;
    if (!url.startsWith(`${prefix}/`)) return response.writeHead(404).end();
    const options = { host: '127.0.0.1', port, method, path: url.slice(prefix.length), headers };
    const outgoing = request(options, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    response.on('close', () => outgoing.destroy());
    outgoing.on('error', () => response.destroy());
    return incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  function dispose(): void {
    server.close();
    server.closeAllConnections();
  }
  return { port: (server.address() as AddressInfo).port, [Symbol.dispose]: dispose };
}

it('the console works behind a proxy that removes a path, on another port, with deep links and reloads', async () => {
  await using shop = await Shop.start({}, RULES);
  using proxy = await proxyTo(shop.weir.ports.debug, '/ops/weir');
  const base = `http://127.0.0.1:${proxy.port}/ops/weir/`;
  browser.requested.clear();
  async function expectRule(page: Page): Promise<void> {
    await page.getByRole('option', { selected: true }).getByText('user').waitFor();
    await connected(page);
  }
  const page = await browser.open(`${base}console#/rules?rule=shop.user`);
  await expectRule(page);
  await page.reload();
  await expectRule(page);
  await page.getByRole('link', { name: 'Look up a counter' }).click();
  await page.getByText('0 of 1', { exact: true }).waitFor();
  await page.goBack();
  await expectRule(page);
  expect([...browser.requested].filter((url) => !url.startsWith(base))).toEqual([]);
  expect(browser.errors).toEqual([]);
});

it('without a token, changes are not offered, with what to do; with CONSOLE=false, there is no console', async () => {
  await using shop = await Shop.start({}, RULES);
  const page = await browser.open(`${consoleOf(shop)}#/callers?domain=shop&descriptor=user%3Dann`);
  await page.getByText('Changes are off: set OPERATOR_TOKENS_FILE or OPERATOR_TOKEN').waitFor();
  expect(await page.getByRole('button', { name: 'Clear…' }).count()).toBe(0);
  await using without = await Shop.start({ env: { CONSOLE: 'false' } }, RULES);
  expect((await fetch(consoleOf(without))).status).toBe(404);
});

const QUESTION_RULES = `domain: shop
descriptors:
  - { key: user, value: mallory, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: user, rate_limit: { unit: day, requests_per_unit: 2 } }
`;

it(
  'five questions of an operator are answered in at most three clicks each',
  async () => {
    await using redis = await RedisProcess.start();
    const ports = await freePorts(2);
    const peers = ports.map((port) => `127.0.0.1:${port}`).join();
    function instance(index: number, more: Readonly<Record<string, string>> = {}): Promise<Shop> {
      const store = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address, OPERATOR_TOKEN: 'a-token-of-operators' };
      const place = { DEBUG_PORT: String(ports[index]), OPERATOR_PEERS: peers, INSTANCE_NAME: `weir-${index}` };
      return Shop.start({ env: { ...store, ...place, ...more } }, QUESTION_RULES);
    }
    await using shop = await instance(0);
    await using odd = await instance(1, { SHADOW_MODE: 'true' });
    for (let call = 0; call < 9; call += 1) await shop.hit('bulk');
    await shop.hit('mallory');
    redis.signal('SIGSTOP');
    await shop.weir.until(
      'the store to be away',
      async () => (await shop.hit('bulk').catch(() => 'failed')) === 'failed',
    );
    redis.signal('SIGCONT');
    await shop.weir.until('the store to be back', () => shop.hit('other').catch(() => false));
    await odd.hit('other');

    const page = await browser.open(consoleOf(shop));
    await page.getByRole('button', { name: 'Enter a token' }).click();
    await page.keyboard.type('a-token-of-operators');
    await page.keyboard.press('Enter');
    let clicks = 0;
    async function click(name: string): Promise<void> {
      clicks += 1;
      await page.getByRole('button', { name }).or(page.getByRole('link', { name })).first().click();
    }
    // Is it well, and since when? Which instance is odd?
    const health = page.getByRole('region', { name: 'Health' });
    await health.getByText(/SHADOW_MODE of weir-1/).waitFor();
    // What has happened some minutes ago?
    const changed = page.getByRole('region', { name: 'What changed' });
    await changed.getByText('Store stopped answering').waitFor();
    await changed.getByText('Store answers again').waitFor();
    // Who is limited most?
    const callers = page.getByRole('region', { name: 'Limited callers', exact: true });
    await callers.getByRole('link', { name: 'user=bulk', exact: true }).waitFor();
    expect(clicks).toBe(0);
    // Why is mallory limited?
    await click('user=mallory');
    await page.getByText('Blocked by rule shop.user_mallory: limit of 0 a day').waitFor();
    expect(clicks).toBe(1);
    // Let bulk pass.
    for (const name of ['user=bulk', 'Clear…', 'Clear counter']) await click(name);
    await page.getByText(/^Changed from \d+ to 0\.$/).waitFor();
    expect(clicks).toBe(4);
    expect(await shop.hit('bulk')).toBe(1);
  },
  LONG,
);

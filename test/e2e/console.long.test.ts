import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';
import { TestBrowser } from '../support/clients/browser';
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

function consoleOf({ weir }: Shop): string {
  return `http://127.0.0.1:${weir.ports.debug}/console/`;
}

const PAGES: Readonly<Record<string, string>> = {
  '#/live': 'Checks',
  '#/rules?rule=shop.user': 'Look up a counter',
  '#/rules?view=rejected': 'invalid rate limit unit',
  '#/rules?view=changes': 'per-user',
  '#/explain?domain=shop&descriptor=user%3Dann': 'Count 5, then 6',
  '#/counters?domain=shop&descriptor=user%3Dann': 'Set…',
  '#/settings?setting=DEBUG_PORT': 'Values: whole number',
  '#/none': 'There is no such page.',
};

/** Milliseconds. axe looks at every element of eight pages. */
const LONG = 300_000;

it.each([
  { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  { colorScheme: 'dark', viewport: { width: 360, height: 700 } },
] as const)(
  'every page is accessible and as wide as its window: %j',
  async (options) => {
    await using shop = await Shop.start({ env: { BACKEND_TYPE: 'memory' } }, RULES.replace(', name: per-user', ''));
    await shop.rules.write('shop.yaml', RULES);
    await shop.weir.line(/changes="1 rule changed/);
    await shop.hit('ann', 5);
    await shop.rules.write('shop.yaml', RULES.replace('day', 'dai'));
    await shop.weir.line(/invalid rate limit unit/);
    for (const [address, text] of Object.entries(PAGES)) {
      const page = await browser.open(consoleOf(shop) + address, options);
      await page.getByText('Connected').waitFor();
      await page.getByText(text).first().waitFor();
      const { violations } = await new AxeBuilder({ page }).analyze();
      const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect([address, found, width]).toEqual([address, [], options.viewport.width]);
    }
    expect(browser.errors).toEqual([]);
  },
  LONG,
);

describe('a stream', () => {
  it('that is silent is lost, and found again; when the service stops, the page says so', async () => {
    await using shop = await Shop.start({}, RULES);
    const page = await browser.open(consoleOf(shop));
    await page.getByText('Connected').waitFor();
    shop.weir.signal('SIGSTOP');
    await page.getByText('Connection lost').waitFor();
    await page.getByRole('alert').getByText('The numbers are old').waitFor();
    shop.weir.signal('SIGCONT');
    await page.getByText('Connected').waitFor();
    shop.weir.signal('SIGTERM');
    await page.getByText('The numbers are old: the service stops').waitFor();
    expect(await shop.weir.exited).toBe(0);
  });

  it('is closed while the page is hidden', async () => {
    await using shop = await Shop.start({}, RULES);
    const page = await browser.open(consoleOf(shop));
    await page.getByText('Connected').waitFor();
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
    [`#/counters?${query}`, '2 left'],
  ] as const) {
    const page = await browser.open(consoleOf(shop) + address);
    if (text !== '2 left') await page.getByText(text).first().waitFor();
    else await page.getByText(/^3 of 1 a day/).waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect((await page.locator('main').innerText()).length).toBeLessThan(10_000);
  }
  expect(browser.errors).toEqual([]);
});

it('10,000 rules are a list of the rows that are visible, and are searched and scrolled', async () => {
  const lines = Array.from(
    { length: 10_000 },
    (_, number) => `  - { key: user, value: u${number}, rate_limit: { unit: minute, requests_per_unit: ${number} } }`,
  );
  await using shop = await Shop.start({}, `domain: shop\ndescriptors:\n${lines.join('\n')}\n`);
  const page = await browser.open(`${consoleOf(shop)}#/rules`);
  const list = page.getByRole('listbox');
  await list.focus();
  await page.keyboard.press('End');
  await page.getByRole('option', { selected: true }).getByText('u9999').waitFor();
  expect(await page.getByRole('option').count()).toBeLessThan(60);
  await page.evaluate("document.querySelector('.list').scrollTop = 44 * 5000");
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
    await page.getByText('Connected').waitFor();
  }
  const page = await browser.open(`${base}console#/rules?rule=shop.user`);
  await expectRule(page);
  await page.reload();
  await expectRule(page);
  await page.getByRole('link', { name: 'Look up a counter' }).click();
  await page.getByText(/^0 of 1 a day/).waitFor();
  await page.goBack();
  await expectRule(page);
  expect([...browser.requested].filter((url) => !url.startsWith(base))).toEqual([]);
  expect(browser.errors).toEqual([]);
});

it('without a token, changes are refused with what to do; with CONSOLE=false, there is no console', async () => {
  await using shop = await Shop.start({}, RULES);
  const page = await browser.open(`${consoleOf(shop)}#/counters?domain=shop&descriptor=user%3Dann`);
  await page.getByRole('button', { name: 'Clear…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Clear' }).click();
  await page.getByText('changes are off: set OPERATOR_TOKEN').waitFor();
  await using without = await Shop.start({ env: { CONSOLE: 'false' } }, RULES);
  expect((await fetch(consoleOf(without))).status).toBe(404);
});

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { TestBrowser } from '../support/clients/browser';
import { SecretMount } from '../support/data/secret-mount';
import { Shop } from './shop';

const RULES = `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: day, requests_per_unit: 3, name: per-user }
    descriptors:
      - { key: path, value: /buy, rate_limit: { unit: day, requests_per_unit: 20 } }
  - { key: counted, rate_limit: { unit: year, requests_per_unit: 10 } }
  - { key: blocked, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: plan, value: free, shadow_mode: true, rate_limit: { unit: year, requests_per_unit: 5 } }
  - key: several
    rate_limits:
      - { unit: year, requests_per_unit: 50 }
      - { unit: hour, requests_per_unit: 40, algorithm: token_bucket, burst: 39 }
  - key: login
    rate_limit:
      unit: day
      requests_per_unit: 1
      block_for: { first: 24h, factor: 2, most: 240h, forgotten_after: 24h }
  - key: twice
    rate_limits:
      - { unit: year, requests_per_unit: 50 }
      - { unit: day, requests_per_unit: 40 }
  - { key: trial, enforce_percent: 1, rate_limit: { unit: year, requests_per_unit: 1 } }
  - key: jobs
    rate_limits:
      - { max_concurrent: 1 }
      - { unit: day, requests_per_unit: 100 }
`;
const TOKEN = 'a-token-of-operators';
const VIEWER = 'token-of-ann-who-views';
const DIGEST = createHash('sha256').update(VIEWER).digest('hex');
const DIST = join(__dirname, '../../dist/console');

const secrets = new SecretMount({ tokens: `ann view sha256:${DIGEST}\n` });
const ENV = {
  OPERATOR_TOKEN: TOKEN,
  OPERATOR_TOKENS_FILE: secrets.path('tokens'),
  KVSTORE_AUTH: 'not-to-be-shown',
};

let shop: Shop;
let browser: TestBrowser;
beforeAll(async () => {
  [shop, browser] = await Promise.all([Shop.start({ env: ENV }, RULES), TestBrowser.start()]);
});
// Chromium writes of each answer with 401.
afterEach(async () => {
  const errors = browser.errors.filter((error) => !error.includes('401'));
  await browser.closePages();
  expect(errors).toEqual([]);
});
afterAll(async () => {
  await browser[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
  secrets[Symbol.dispose]();
});

/** Opens a page of the console by its address. */
function open(address = ''): Promise<Page> {
  return browser.open(`http://127.0.0.1:${shop.weir.ports.debug}/console/${address}`);
}

async function enterToken(page: Page, token: string): Promise<void> {
  await page.getByLabel('Operator token').fill(token);
  await page.keyboard.press('Enter');
}

it('Live shows what happens, the rules that are hit and the callers that are limited, and a rejected reload', async () => {
  const page = await open();
  const health = page.getByRole('region', { name: 'Health' });
  await health.getByText('All is well').waitFor();
  expect(await page.title()).toBe('Live · weir');
  const rules = page.getByRole('region', { name: 'Busiest rules' }).first();
  await shop.weir.until('a rule with denials', async () => {
    await shop.hit('ann', 9);
    return /shop\.user/.test(await rules.innerText());
  });
  await page.getByText('The operator token is needed to see what callers have sent.').waitFor();
  await enterToken(page, TOKEN);
  await page.getByRole('region', { name: 'Limited callers' }).getByText('user=ann').waitFor();
  await shop.rules.write('shop.yaml', RULES.replace('day', 'dai'));
  await health.getByRole('status').getByText('Impaired').waitFor();
  await health.getByRole('link', { name: 'What is wrong' }).click();
  await page.getByText("invalid rate limit unit 'dai'").waitFor();
  expect(await page.locator('pre').first().innerText()).toMatch(/\n {2}\| {25}\^{3}\n/);
  await page.locator('.added', { hasText: 'unit: dai,' }).waitFor();
  await shop.rules.write('shop.yaml', RULES.replace('requests_per_unit: 3', 'requests_per_unit: 4'));
  await page.getByText('Valid rules have followed.').waitFor();
  await page.getByRole('link', { name: 'Changes' }).click();
  await page.locator('.removed', { hasText: 'requests_per_unit: 3' }).waitFor();
  await page.locator('.added', { hasText: 'requests_per_unit: 4' }).waitFor();
  const loads = page.getByRole('region', { name: 'Loads, table' }).getByRole('row');
  await loads.nth(1).waitFor();
  expect(await loads.allInnerTexts()).toEqual([
    expect.stringMatching(/^Loaded/),
    expect.stringMatching(/\s10\s+changed shop\.user$/),
    expect.stringMatching(/\s10\s+the first rules$/),
  ]);
});

it('Rules are searched and chosen with the keyboard, and the address has both', async () => {
  const page = await open('#/rules');
  await page.getByRole('option', { name: 'plan = free' }).waitFor();
  await page.getByLabel('Search').fill('/BUY');
  await page.getByText('2 shown').waitFor();
  expect((await page.getByRole('option').allInnerTexts()).map((text) => text.trim().replaceAll(/\s+/g, ' '))).toEqual([
    'shop',
    expect.stringMatching(/^user any (?:3|4) a day .*shop\.yaml:3/),
    expect.stringMatching(/^└ path = \/buy 20 a day .*shop\.yaml:6/),
  ]);
  for (const key of ['Tab', 'Tab', 'End']) await page.keyboard.press(key);
  await page.getByLabel('The chosen rule').getByText('shop.user.path_/buy').waitFor();
  expect(page.url()).toMatch(/#\/rules\?q=%2FBUY&rule=shop\.user\.path_%2Fbuy$/);
  await page.reload();
  await page.getByRole('option', { selected: true }).getByText('path').waitFor();
  await page.getByRole('link', { name: 'Explain a request' }).click();
  expect(await page.getByLabel('Descriptors').inputValue()).toBe('user=x,path=/buy');
});

it('hits over a limit that is in shadow mode, or not enforced for their caller, are not shown as limited', async () => {
  const page = await open('#/rules?rule=shop.trial');
  const [shadow, trial] = ['plan = free', 'trial any'].map((name) => page.getByRole('option', { name }));
  await shadow!.waitFor();
  await page.getByRole('button', { name: 'Enter a token' }).click();
  await enterToken(page, TOKEN);
  await shop.weir.until('hits to be over the limits in the numbers', async () => {
    for (const call of ['plan=free', 'trial=eve', 'trial=eve']) await shop.client.shouldRateLimit('shop', [call], 3);
    return (await shadow!.innerText()).includes('100 %');
  });
  expect(await shadow!.locator('.share.shadow').count()).toBe(1);
  expect(await trial!.innerText()).toMatch(/\s0 %\s/);
  const rule = page.getByLabel('The chosen rule');
  await rule.getByText('Callers over its limit').waitFor();
  expect(await rule.innerText()).not.toMatch(/limits now|limited/);
  expect(await page.getByRole('button', { name: 'Limiting' }).innerText()).toBe('Limiting 0');
  await page.goto(page.url().replace(/#.*/, '#/callers?q=trial'));
  const caller = page.getByRole('row').filter({ hasText: 'passes, shadow mode' });
  await caller.locator('.share.shadow').waitFor();
});

it('Explain asks for the token, shows each step and what another limit would do, and has a command', async () => {
  const page = await open('#/explain');
  await page
    .getByLabel('Paste a request')
    .fill(
      `grpcurl -d '{"domain": "shop", "descriptors": [{"entries": [{"key": "plan", "value": "x"}]}], "hits_addend": 2}' host:1 x/y`,
    );
  await page.getByLabel('Operator token').waitFor();
  await enterToken(page, 'wrong');
  await page.getByText('The token is wrong.').waitFor();
  await enterToken(page, TOKEN);
  await page.getByText("No rule. The nearest is shop.plan_free (shop.yaml:9): entry 1 has the value 'x'").waitFor();
  expect(await page.getByRole('textbox', { name: 'Hits' }).inputValue()).toBe('2');
  await page.getByText('weir-admin explain -domain shop -descriptors plan=x -hits_addend 2').waitFor();
  await page.getByLabel('Descriptors').fill('user=joe');
  await page.getByLabel('What would pass').fill('1');
  await page.getByRole('button', { name: 'Explain' }).click();
  await page.getByText('OVER_LIMIT: the count would be 2 after 2 hits, over the limit of 1').waitFor();
  expect(page.url()).toMatch(/#\/explain\?domain=shop&descriptor=user%3Djoe&hits=2&limit=1$/);
  await page.getByText(/^curl -s http.*\/api\/explanations -d .*"limit":1/).waitFor();
});

it('a caller has its counter, which is cleared after a dialog that shows what changes', async () => {
  await shop.hit('eve', 9);
  const page = await open('#/callers?domain=shop&descriptor=user%3Deve');
  await enterToken(page, TOKEN);
  await page
    .getByRole('row')
    .getByText(/^9 of [34]$/)
    .waitFor();
  await page.getByRole('status').getByText('Limited now, by shop.user').waitFor();
  await page.getByText(/^Clear: [34] more hits pass until /).waitFor();
  await page.keyboard.press('c');
  const dialog = page.getByRole('dialog', { name: 'Clear the day counter of user=eve?' });
  await dialog.getByText('9 → 0').waitFor();
  await dialog.getByText(/^[34] more hits pass until /).waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Clear…' }).click();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  // The button that has opened the dialog has the focus again.
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Clear…');
  await page.keyboard.press('Enter');
  await dialog.getByLabel('Why').fill('ticket 4411');
  await dialog.getByRole('button', { name: 'Clear counter' }).click();
  await page.getByText('Changed from 9 to 0.').waitFor();
  const changes = page.getByRole('region', { name: 'Changes to this caller' });
  await changes.getByText(/^9 → 0 · .*from 127\.0\.0\.1 · “ticket 4411”$/).waitFor();
  const line = /msg="counter cleared by an operator" domain=shop descriptor="user=eve" before=9 after=0/;
  expect(await shop.weir.line(line)).toContain('peer=127.0.0.1');
  await page
    .getByRole('row')
    .getByText(/^0 of [34]$/)
    .waitFor();
  await page.getByRole('button', { name: 'Set…' }).click();
  await page.getByRole('dialog').getByLabel('Count').fill('2');
  await page.getByRole('dialog').getByText('0 → 2').waitFor();
  await page.getByRole('button', { name: 'Set counter' }).click();
  await page.getByText('Changed from 0 to 2.').waitFor();
});

it('the numbers of a rule and a caller are those that a client has counted', async () => {
  const codes: (number | undefined)[] = [];
  for (let call = 0; call < 25; call += 1) {
    codes.push((await shop.client.shouldRateLimit('shop', ['counted=ida'])).overallCode);
  }
  const over = codes.filter((code) => code === 2).length;
  expect(over).toBe(15);
  const page = await open('#/rules?rule=shop.counted');
  await page.getByText(`25 hits, ${over} over the limit (60 %)`).waitFor();
  await page.getByRole('button', { name: 'Enter a token' }).click();
  await enterToken(page, TOKEN);
  await page.goto(page.url().replace(/#.*/, '#/callers?q=ida'));
  await page.getByRole('row').filter({ hasText: 'counted=ida' }).getByText(String(over), { exact: true }).waitFor();
  await page.getByRole('link', { name: 'counted=ida', exact: true }).click();
  await page.getByText(new RegExp(`${over} calls limited in the last 10 min, by shop.counted, since`)).waitFor();
  await page.getByText('25 of 10', { exact: true }).waitFor();
});

it('a caller has all limits of a rule at once, and a bucket is filled, whose tokens left are in all numbers', async () => {
  await shop.client.shouldRateLimit('shop', ['several=eve'], 21);
  const page = await open('#/callers?domain=shop&descriptor=several%3Deve');
  await enterToken(page, TOKEN);
  const bucket = page.getByRole('row').filter({ hasText: 'token bucket, 40 an hour, burst 39' });
  await bucket.getByText('18 of 39 tokens').waitFor();
  await page.getByRole('row').filter({ hasText: '50 a year' }).getByText('21 of 50').waitFor();
  await bucket.getByRole('button', { name: 'Set…' }).click();
  expect(await page.getByRole('dialog').getByLabel('Tokens left').inputValue()).toBe('18');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await bucket.getByRole('button', { name: 'Clear…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Clear the hour counter of several=eve?' });
  await dialog.getByText('18 → 39 tokens left').waitFor();
  await dialog.getByText('21 more hits pass.').waitFor();
  await dialog.getByRole('button', { name: 'Clear counter' }).click();
  await page.getByText('Changed from 18 to 39 tokens left.').waitFor();
  const line =
    /msg="counter cleared by an operator" domain=shop descriptor="several=eve" window=hour before=18 after=39/;
  expect(await shop.weir.line(line)).toContain('peer=127.0.0.1');
  await bucket.getByText('39 of 39 tokens').waitFor();
  await page.getByRole('link', { name: 'Explain a call' }).click();
  await page.getByText(/^Tokens left 39, then 38, of token bucket, 40 an hour, burst 39/).waitFor();
});

it('a caller that exceeds one of several limits is cleared at once for all of them, from its explanation', async () => {
  for (const hits of [21, 60]) await shop.client.shouldRateLimit('shop', ['several=zoe'], hits);
  const page = await open('#/explain?domain=shop&descriptor=several%3Dzoe');
  await enterToken(page, TOKEN);
  await page
    .getByRole('status')
    .getByText(/over the limit of 50 \(50 a year\), until /)
    .waitFor();
  await page.getByRole('link', { name: 'Clear…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Clear the counters of all 2 limits of several=zoe?' });
  await dialog.getByText('81 → 0').waitFor();
  await dialog.getByRole('button', { name: 'Clear counters' }).click();
  await page.getByText('50 a year: Changed from 81 to 0.').waitFor();
  await page.getByText('token bucket, 40 an hour, burst 39: Changed from 18 to 39 tokens left.').waitFor();
  await page.getByText('0 of 50', { exact: true }).waitFor();
  await page.getByText('39 of 39 tokens').waitFor();
  expect(await shop.weir.line(/descriptor="several=zoe" window=hour before=18 after=39/)).toContain('peer=127.0.0.1');
});

it('a rule with several limits says of how many calls its hits are, as a client has counted them', async () => {
  for (let call = 0; call < 7; call += 1) {
    expect((await shop.client.shouldRateLimit('shop', ['twice=kim'])).overallCode).toBe(1);
  }
  const page = await open('#/rules?rule=shop.twice');
  await page.getByText('14 hits of 7 calls, 0 over the limit (0 %)').waitFor();
});

it('a caller that is blocked says until when and after which block, and what clearing does', async () => {
  for (let call = 0; call < 2; call += 1) await shop.client.shouldRateLimit('shop', ['login=eve']);
  const page = await open('#/callers?domain=shop&descriptor=login%3Deve');
  // The fourth block.
  await page.route(/\/api\/explanations/, async (route) => {
    const response = await route.fetch();
    const text = await response.text();
    await route.fulfill({ response, body: text.replaceAll('"seconds":86400', '"seconds":691200') });
  });
  await enterToken(page, TOKEN);
  await page.getByText(/^Blocked until .*, 8 d after 4 d, by shop\.login$/).waitFor();
  await page.getByRole('row').getByText('blocked', { exact: true }).waitFor();
  await page.goto(page.url().replace('callers', 'explain'));
  expect(await page.getByText(/^Count 0, then 0, of .*; blocked until /).innerText()).not.toContain('the window ends');
  await page.goBack();
  await page.getByRole('row').getByText('blocked', { exact: true }).waitFor();
  await page.keyboard.press('c');
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/^the block ends, and 1 more hit passes until /).waitFor();
  await dialog.getByRole('button', { name: 'Clear counter' }).click();
  await page.getByText('Passes now.').waitFor();
  expect((await shop.client.shouldRateLimit('shop', ['login=eve'])).overallCode).toBe(1);
});

it('places of open reservations are shown, and are neither cleared nor set', async () => {
  const descriptors = [{ entries: [{ key: 'jobs', value: 'eve' }] }];
  const body = JSON.stringify({ domain: 'shop', descriptors, ttl: '60s', id: 'job-1' });
  expect((await shop.weir.http('/v1/reservations', { method: 'POST', body })).status).toBe(201);
  const page = await open('#/callers?domain=shop&descriptor=jobs%3Deve');
  await enterToken(page, TOKEN);
  const places = page.getByRole('row').filter({ hasText: '1 at a time' });
  await places.getByText('1 of 1 open').waitFor();
  await page.getByText(/^Settle or cancel open reservations: the first expires at /).waitFor();
  expect(await places.getByRole('button').count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Clear…' }).count()).toBe(1);
  expect(await page.getByRole('button', { name: /^Clear all/ }).count()).toBe(0);
  await page.getByText('job-1: 1 hit, settled at ').first().waitFor();
  // When a place becomes free is not known.
  await page.goto(page.url().replace('callers', 'explain'));
  await page.getByText(/^jobs=eve: .* open \(1 at a time\)$/).waitFor();
  await page.getByText('Count 1, then 1, of 1 at a time; 1 open reservation', { exact: true }).waitFor();
});

it('the page of a caller counts its calls by the second while it is open, as a client does', async () => {
  const page = await open('#/callers?domain=shop&descriptor=counted%3Dwatched');
  await enterToken(page, TOKEN);
  // From the first whole second on, calls are counted.
  await page.getByRole('slider', { name: /^Calls of this caller per second/ }).waitFor();
  for (let call = 0; call < 12; call += 1) await shop.client.shouldRateLimit('shop', ['counted=watched']);
  let counts = { calls: 0, denied: 0 };
  await shop.weir.until('all calls to be shown', async () => {
    const { calls, denied } = (await (
      await page.waitForResponse((each) => each.url().includes('/api/watches') && each.ok())
    ).json()) as Readonly<Record<string, readonly number[]>>;
    const [allCalls, allDenied] = [calls!, denied!].map((each) => each.reduce((sum, value) => sum + value, 0));
    counts = { calls: allCalls!, denied: allDenied! };
    return counts.calls >= 12;
  });
  expect(counts).toEqual({ calls: 12, denied: 2 });
  const chart = page.getByRole('slider', { name: /^Calls of this caller per second: calls: .* to [1-9]/ });
  await chart.waitFor();
});

it('a viewer sees why it may change nothing, and no controls for it', async () => {
  await shop.hit('viewed', 9);
  const page = await open('#/callers?domain=shop&descriptor=user%3Dviewed&clear=ask');
  await page.getByRole('region', { name: 'Limited callers' }).getByText('None that may be shown.').waitFor();
  await page.waitForResponse((each) => each.url().includes('/api/watches'));
  expect(await page.getByText(/Authorization|Calls of this caller/).count()).toBe(0);
  await enterToken(page, VIEWER);
  expect(await page.evaluate('document.activeElement.tagName')).toBe('MAIN');
  await page
    .getByRole('row')
    .getByText(/^9 of [34]$/)
    .waitFor();
  await page.getByText('This token has the role view: a change needs one with the role operate.').waitFor();
  await page.keyboard.press('c');
  expect(await page.getByRole('button', { name: /Clear|Set/ }).count()).toBe(0);
  expect(await page.getByRole('dialog').count()).toBe(0);
});

it('an answer that takes longer than its interval is waited for, and shown', async () => {
  await shop.hit('slow', 2);
  const page = await open('#/callers?domain=shop&descriptor=user%3Dslow');
  await page.getByLabel('Operator token').waitFor();
  const late = new AbortController();
  let requests = 0;
  await page.route(/\/api\/counters/, async (route) => {
    requests += 1;
    if (!late.signal.aborted) await once(late.signal, 'abort');
    await route.continue();
  });
  await enterToken(page, TOKEN);
  // The calls of the caller are requested every two seconds, its counter every three.
  for (let look = 0; look < 3; look += 1) {
    await page.waitForResponse((each) => each.url().includes('/api/watches') && each.ok());
  }
  expect(requests).toBe(1);
  late.abort();
  await page
    .getByRole('row')
    .getByText(/^2 of [34]$/)
    .waitFor();
});

it('a caller with a limit of 0 is not cleared, as that would unblock nothing', async () => {
  await shop.client.shouldRateLimit('shop', ['blocked=mallory']);
  const page = await open('#/callers?domain=shop&descriptor=blocked%3Dmallory');
  await enterToken(page, TOKEN);
  await page.getByText('Blocked by rule shop.blocked: limit of 0 a day').waitFor();
  await page.getByText('Clearing cannot unblock:').waitFor();
  const help = page.getByRole('region', { name: 'What helps' });
  expect(await help.getByRole('button', { name: 'Clear…' }).isDisabled()).toBe(true);
});

it('a caller and Explain show the hits of a counter that are held', async () => {
  const page = await open('#/callers?domain=shop&descriptor=user%3Dheld');
  await page.getByLabel('Operator token').waitFor();
  // Counters in one process are not leased.
  await page.route(/\/api\/(?:counters|explanations)/, async (route) => {
    const response = await route.fetch();
    const text = await response.text();
    await route.fulfill({ response, body: text.replaceAll('"leased":null', '"leased":5') });
  });
  await enterToken(page, TOKEN);
  await page.getByText('5 hits are held for later calls').waitFor();
  await page.goto(page.url().replace(/#.*/, '#/explain?domain=shop&descriptor=user%3Dheld&hits=1'));
  const counted = page.getByText(/^Count 0, of which 5 are leased here/);
  expect(await counted.innerText()).toMatch(/^Count 0, of which 5 are leased here, then 1, of/);
});

it('Callers are searched by any part, and each leads to its explanation, its counter, its rule and to clearing it', async () => {
  const name = `tenant-${'x'.repeat(60)}-the-end`;
  await shop.hit(name, 9);
  await shop.hit('others', 9);
  const page = await open('#/callers');
  await enterToken(page, TOKEN);
  await page.getByLabel('Search').fill('END user=');
  await page.getByText(/^1 of \d+ callers/).waitFor();
  expect(await page.getByRole('link', { name: 'shop.user', exact: true }).getAttribute('href')).toBe(
    '#/rules?rule=shop.user',
  );
  await page.getByRole('link', { name: `Explain user=${name}`.slice(0, 80) }).click();
  await page.getByText(/^OVER_LIMIT: the count would be 10/).waitFor();
  await page.goBack();
  await page.getByLabel('Search').fill('');
  await page
    .getByRole('link', { name: `user=${name}` })
    .first()
    .click();
  await page
    .getByRole('row')
    .getByText(/^9 of [34]$/)
    .waitFor();
  // The next one of the list.
  await page.keyboard.press('k');
  await page.getByRole('button', { name: 'Clear…' }).first().waitFor();
  await page.goBack();
  await page
    .getByRole('row')
    .getByText(/^9 of [34]$/)
    .waitFor();
  await page.keyboard.press('c');
  await page.getByRole('dialog').getByRole('button', { name: 'Clear counter' }).click();
  await page.getByText('Changed from 9 to 0.').waitFor();
});

it('Explain and Callers offer the domains, the keys of their rules, and callers that were limited lately', async () => {
  // More than others, as only the ten that were limited most are offered.
  for (let call = 0; call < 4; call += 1) await shop.hit('recent', 9);
  const page = await open('#/callers');
  await page.getByRole('button', { name: 'Enter a token' }).click();
  await page.keyboard.type(TOKEN);
  await page.keyboard.press('Enter');
  await page.getByLabel('Domain').selectOption('shop');
  await page.getByLabel('Keys').selectOption('user, path');
  await page.getByLabel('user', { exact: true }).fill('joe,jim');
  expect(await page.getByLabel('path', { exact: true }).inputValue()).toBe('/buy');
  expect(await page.getByLabel('Descriptor').inputValue()).toContain('"joe,jim"');
  await page.getByRole('button', { name: 'Look up' }).click();
  await page.waitForURL(/#\/callers\?.*joe/);
  await page.getByRole('heading', { name: 'joe,jim' }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('e');
  await page.getByRole('link', { name: 'shop: user=recent' }).click();
  await page.getByText(/^OVER_LIMIT: the count would be 37/).waitFor();
  expect(await page.getByLabel('Keys').inputValue()).toBe('user');
});

it('Activity has a load of the same rules once, by whichever instances and from whichever folders, and each other one', async () => {
  const page = await browser.open('about:blank');
  const at = 1_800_000_000;
  const loads = [
    { at, instance: 'weir-0', text: '4 rules loaded, version /a/config@0123' },
    { at: at + 2, instance: 'weir-1', text: '4 rules loaded, version /b/config@0123' },
    { at: at + 4, instance: 'weir-0', text: '4 rules loaded, version /a/config@4567' },
    { at: at + 6, instance: 'weir-0', text: '4 rules loaded, version /a/config@0123' },
  ];
  const marks = loads.map((load) => ({ kind: 'reload', ...load }));
  await page.route(/\/api\/history/, (route) => route.fulfill({ json: { ...historyOf(null), marks } }));
  await page.goto(`http://127.0.0.1:${shop.weir.ports.debug}/console/#/activity`);
  const log = page.getByRole('region', { name: 'What happened' }).getByRole('listitem');
  await log.filter({ hasText: 'Rules loaded' }).nth(2).waitFor();
  expect(await log.filter({ hasText: 'Rules loaded' }).locator('.sub').allInnerTexts()).toEqual([
    '4 rules loaded, version /a/config@0123 · weir-0 · what changed',
    '4 rules loaded, version /a/config@4567 · weir-0 · what changed',
    '4 rules loaded, version /a/config@0123 · 2 instances · what changed',
  ]);
});

it('outages with different answers fit into a narrow window, and the errors of rejected rules are one text', async () => {
  const page = await browser.open('about:blank', { viewport: { width: 390, height: 844 } });
  const outage = { at: 1_800_000_000, until: 1_800_000_060, kind: 'store', store: 'main', server: '10.0.0.5:6379' };
  const marks = [
    { ...outage, calls: 1_000_000, policy: 'error', instance: 'weir-0' },
    { ...outage, calls: 1_000_000, policy: 'allow', instance: 'weir-1' },
    { at: 1_800_000_090, kind: 'rejection', text: 'rules rejected: one.\ntwo.', instance: 'weir-0' },
  ];
  await page.route(/\/api\/history/, (route) => route.fulfill({ json: { ...historyOf(null), marks } }));
  // Times of today have no day.
  await page.clock.setFixedTime(1_800_000_120_000);
  await page.goto(`http://127.0.0.1:${shop.weir.ports.debug}/console/#/activity`);
  await page.getByText('rules rejected: one. two. · weir-0').waitFor();
  const table = page.getByRole('region', { name: 'Outages, table' });
  await table.getByText('failed or passed without limits').waitFor();
  const sizes = `[...document.querySelectorAll('.scroll')].map((region) => region.scrollWidth - region.clientWidth)`;
  expect(await page.evaluate(sizes)).toEqual([0]);
  const lines = "[...document.querySelectorAll('.scroll .name')].map((name) => name.offsetHeight)";
  expect(new Set(await page.evaluate<number[]>(lines)).size).toBe(1);
});

/** A history of two samples, or a third one after them. */
function historyOf(since: string | null): object {
  const [times, values] =
    since === null
      ? [
          [1_800_000_000, 1_800_000_001],
          [1, 2],
        ]
      : [[1_800_000_002], [7]];
  const names = ['within', 'near', 'over', 'shadow', 'calls', 'invalid', 'storeErrors', 'noMatch'];
  const mark = { at: 1_800_000_001, kind: 'reload', text: '4 rules loaded' };
  return {
    ...{ interval: 1, times, marks: since === null ? [mark] : [] },
    rates: Object.fromEntries(names.map((name) => [name, values])),
    latency: { p50: values, p99: values.map(() => null) },
    store: { requests: values, errors: values, latency: values },
    rules: [{ statisticsKey: 'shop.user', hits: values, over: values }],
  };
}

it('Live has charts of what has happened before the page was opened, which are read with the arrow keys', async () => {
  const page = await browser.open('about:blank');
  const asked: (string | null)[] = [];
  await page.route(/\/api\/history/, async (route) => {
    const since = new URL(route.request().url()).searchParams.get('since');
    // The third request is not answered.
    if (asked.push(since) <= 2) await route.fulfill({ json: historyOf(since) });
  });
  await page.goto(`http://127.0.0.1:${shop.weir.ports.debug}/console/`);
  await page.getByRole('button', { name: 'Calls over gRPC' }).waitFor();
  await page.keyboard.press('1');
  const chart = page.getByRole('slider', { name: 'Hits per second, by outcome: passed: 14.0 now, from 2.0 to 14.0' });
  await chart.waitFor();
  expect(asked.slice(0, 2)).toEqual([null, '1800000001']);
  await chart.focus();
  for (const key of ['End', 'ArrowLeft', 'ArrowLeft']) await page.keyboard.press(key);
  await page.locator('[aria-valuetext*=": passed 2.0, limited 0"]').waitFor();
  await page.keyboard.press('End');
  await page.locator('[aria-valuetext*=": passed 14.0"]').waitFor();
  await page.keyboard.press('4');
  expect(await page.getByRole('slider', { name: 'Answer time, ms' }).getAttribute('aria-label')).toContain(
    '99 % within: no values',
  );
  await page.getByRole('region', { name: 'What changed' }).getByText('4 rules loaded').waitFor();
  // Calls are those of gRPC, failed ones those of every listener: neither is a part of the other.
  await page.keyboard.press('3');
  const title = 'Calls over gRPC, and failed ones of all listeners, per second';
  await page.getByRole('slider', { name: `${title}: gRPC: 7.0 now, from 1.0 to 7.0; failed: 7.0 now` }).waitFor();
  await page.keyboard.press('4');
  expect(await page.getByRole('button', { name: 'Answer time' }).getAttribute('aria-pressed')).toBe('true');
  await page.keyboard.press('r');
  expect(page.url()).toMatch(/range=5m$/);
  await page.goto(page.url().replace(/#.*|$/, '#/rules?rule=shop.user'));
  await page.getByRole('slider', { name: 'shop.user, hits per second: hits: 7.0 now' }).waitFor();
});

it('every key of the list works, and links lead to where the range stays', async () => {
  const page = await open('#/live?range=15m');
  await page.getByRole('region', { name: 'Health' }).getByText('All is well').waitFor();
  await page.keyboard.press('?');
  const dialog = page.getByRole('dialog', { name: 'Keys' });
  await dialog.waitFor();
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Close');
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  for (const [key, title] of Object.entries({
    c: 'Callers',
    r: 'Rules',
    f: 'Fleet',
    e: 'Explain',
    a: 'Activity',
    s: 'Settings',
    l: 'Live',
  })) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.getByRole('heading', { name: title, level: 1 }).waitFor();
    expect(page.url()).toMatch(/range=15m/);
  }
  await page.keyboard.press('/');
  await page.keyboard.type('/buy');
  await page.keyboard.press('Enter');
  await page.getByText('2 shown').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('heading', { name: 'Rules' }).click();
  for (const key of ['j', 'j']) await page.keyboard.press(key);
  await page.getByLabel('The chosen rule').getByText('shop.user').first().waitFor();
});

it('Settings shows those that are set first, without secrets, each with its documentation', async () => {
  const page = await open('#/settings?q=KVSTORE_AUTH&setting=KVSTORE_AUTH');
  await page.getByText('The operator token is needed to see this.').waitFor();
  await enterToken(page, TOKEN);
  await page.getByRole('heading', { name: 'Set (1)' }).waitFor();
  await page.getByText(/^Values: .*password/i).waitFor();
  expect(await page.locator('.settings dd').first().innerText()).toMatch(/^\*\*\*\n/);
  await page.getByLabel('Search').fill('limited MOST descriptors');
  await page.getByRole('link', { name: 'OFFENDERS_SIZE', exact: true }).waitFor();
  await page.getByLabel('Search').fill('');
  await page.getByRole('link', { name: 'OPERATOR_TOKEN', exact: true }).waitFor();
  expect(await page.content()).not.toMatch(/not-to-be-shown|a-token-of-operators/);
});

it('the console requests nothing but itself and the API, and has at most 80 KB', () => {
  const base = `http://127.0.0.1:${shop.weir.ports.debug}/`;
  const others = [...browser.requested].filter((url) => !/^(?:console|api)\//.test(url.slice(base.length)));
  expect([others, browser.requested.size > 6]).toEqual([[], true]);
  const files = ['index.html', 'main.js', 'app.css', 'icon.svg'].map((name) => readFileSync(join(DIST, name)));
  expect(files.reduce((sum, file) => sum + gzipSync(file).length, 0)).toBeLessThan(80_000);
});

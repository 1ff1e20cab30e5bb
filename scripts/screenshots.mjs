// Writes the pictures of the console in docs/images/: the built service with some rules and calls, in Chromium.
//
//   npm run screenshots
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';
import { ROOT, printStatus } from './workspace.mjs';

const RULES = `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 60, name: per-user }
    descriptors:
      - { key: path, value: /checkout, rate_limit: { unit: hour, requests_per_unit: 20 } }
      - { key: path, value: '/search*', rate_limit: { unit: second, requests_per_unit: 5 } }
  - key: plan
    value: free
    rate_limit: { unit: second, requests_per_unit: 20, algorithm: token_bucket, burst: 40 }
  - key: plan
    value: enterprise
    rate_limit: { unlimited: true }
  - { key: network, value: 10.*, shadow_mode: true, rate_limit: { unit: second, requests_per_unit: 10 } }
`;
/** Descriptors, and how often each is called per second. */
const CALLERS = [
  ['user=eve', 12],
  ['user=ann', 2],
  ['user=ben,path=/checkout', 1],
  ['plan=free', 26],
  ['network=10.0.0.7', 14],
];
/**
 * Milliseconds of calls before a reload of the rules, and after it before the first picture, for lines of some length.
 */
const [BEFORE, AFTER] = [180_000, 120_000];
const PAGES = {
  live: '#/live',
  rules: '#/rules?rule=shop.user',
  explain: '#/explain?domain=shop&descriptor=user%3Deve&descriptor=plan%3Dfree',
};

// The pictures show it.
const folder = join(tmpdir(), 'weir');
mkdirSync(join(folder, 'config'), { recursive: true });
writeFileSync(join(folder, 'config/shop.yaml'), RULES);
const local = { HOST: '127.0.0.1', GRPC_HOST: '127.0.0.1', DEBUG_HOST: '127.0.0.1' };
const ports = { PORT: '0', GRPC_PORT: '0', DEBUG_PORT: '0' };
const env = {
  PATH: process.env.PATH,
  ...local,
  ...ports,
  RUNTIME_ROOT: folder,
  RUNTIME_WATCH_ROOT: 'false',
  BACKEND_TYPE: 'memory',
  USE_STATSD: 'false',
};
const started = [];
function start(program, args, options) {
  const child = spawn(process.execPath, [join(ROOT, 'dist', program), ...args], options);
  started.push(child);
  return child;
}

const weir = start('main.js', [], { env, stdio: ['ignore', 'ignore', 'pipe'] });
const executablePath = execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim();
const browser = await chromium.launch({ executablePath });
try {
  const [, grpc, debug] = await serving();
  for (const [descriptor, rate] of CALLERS) {
    const flags = [
      '-address',
      grpc,
      '-domain',
      'shop',
      '-descriptors',
      descriptor,
      '-n',
      '1000000',
      '-rate',
      String(rate),
    ];
    start('cli/weir-client.js', flags, { stdio: 'ignore' });
  }
  const size = { width: 1440, height: 900 };
  const page = await browser.newPage({ viewport: size, timezoneId: 'Etc/UTC', locale: 'en-GB' });
  await page.goto(`http://${debug}/console/`);
  printStatus(`calling for ${(BEFORE + AFTER) / 1000} s`);
  await page.waitForTimeout(BEFORE);
  writeFileSync(join(folder, 'config/shop.yaml'), RULES.replace('burst: 40', 'burst: 30'));
  await page.waitForTimeout(AFTER);
  mkdirSync(join(ROOT, 'docs/images'), { recursive: true });
  for (const [name, address] of Object.entries(PAGES)) {
    await page.goto(`http://${debug}/console/${address}`);
    // The rates of rules are those between two looks.
    await page.waitForTimeout(name === 'rules' ? 12_000 : 2_000);
    await page.screenshot({ path: join(ROOT, `docs/images/console-${name}.png`) });
  }
} finally {
  await browser.close();
  for (const child of started) child.kill();
  rmSync(folder, { recursive: true });
}

/** The addresses of the listeners, when the service serves. */
async function serving() {
  for await (const line of createInterface(weir.stderr)) {
    const addresses = /msg="serving".* grpc=(\S+) .*debug=(\S+)/.exec(line);
    if (addresses !== null) return addresses;
  }
  throw new Error('the service has not started: build it first');
}

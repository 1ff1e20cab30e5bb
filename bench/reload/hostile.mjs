// What hostile rule files do to decisions: npm run bench:hostile-rule-files -- [names of cases]
// Needs a build (npm run build), 2.5 GB of memory and, for the sparse file, a file system with sparse files. Each case has a service of
// its own, which answers calls one after the other while the files appear in its rule folder.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
const MIB = 1024 * 1024;
const LIMIT = 32 * MIB;
/** Seconds after which a case is abandoned. */
const PATIENCE = 120;
const RULES = 'domain: shop\ndescriptors:\n  - key: user\n    rate_limit: { unit: minute, requests_per_unit: 10 }\n';

function fill(text, bytes = LIMIT) {
  return Buffer.alloc(bytes, text);
}

function file(content) {
  return (folder) => writeFileSync(join(folder, 'hostile.yaml'), content());
}

function writeFiles(folder, count) {
  for (let each = 0; each < count; each += 1) {
    writeFileSync(join(folder, `${each}.yaml`), RULES.replace('shop', `d${each}`));
  }
}

/** Each puts files into the rule folder. */
const cases = {
  'nothing, for comparison': file(() => RULES.replace('shop', 'other')),
  'a sparse file of 1.9 GB': (folder) => {
    const path = join(folder, 'hostile.yaml');
    writeFileSync(path, RULES);
    truncateSync(path, 1.9e9);
  },
  '32 MiB of blanks': file(() => fill(' ')),
  '32 MiB of comments': file(() => fill('# nothing to see here\n')),
  'one line of 32 MiB': file(() => fill('x')),
  '32 MiB of [': file(() => fill('[')),
  '32 MiB of {': file(() => fill('{')),
  'blocks nested 5,000 deep': file(() =>
    Array.from({ length: 5000 }, (_, depth) => `${' '.repeat(depth)}descriptors:\n`).join(''),
  ),
  '1,000,000 aliases': file(() => `domain: a\nx: &x 1\ny:\n${'  - *x\n'.repeat(1_000_000)}`),
  'anchors that multiply': file(() => {
    let text = 'domain: bomb\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n';
    for (let level = 1; level < 12; level += 1) {
      const aliases = Array.from({ length: 10 }, () => `*a${level - 1}`);
      text += `a${level}: &a${level} [${aliases.join(', ')}]\n`;
    }
    return text;
  }),
  'a list of 8,000,000 items': file(() => fill('- a\n')),
  '10,000 files': (folder) => writeFiles(folder, 9_999),
  '100,000 files': (folder) => writeFiles(folder, 100_000),
};

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function startService(root) {
  const [http, grpc, debug] = [await freePort(), await freePort(), await freePort()];
  const child = spawn(process.execPath, ['--require', join(HERE, 'loop-delay.cjs'), join(HERE, '../../dist/main.js')], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: {
      PATH: process.env.PATH,
      ...{
        HOST: '127.0.0.1',
        PORT: http,
        GRPC_HOST: '127.0.0.1',
        GRPC_PORT: grpc,
        DEBUG_HOST: '127.0.0.1',
        DEBUG_PORT: debug,
      },
      ...{
        RUNTIME_ROOT: root,
        RUNTIME_WATCH_ROOT: 'false',
        BACKEND_TYPE: 'memory',
        LOG_LEVEL: 'info',
        USE_PUSHSTATS: 'false',
        DISABLE_STATS: 'true',
      },
    },
  });
  const lines = [];
  createInterface(child.stderr).on('line', (line) => lines.push(line));
  while (!lines.some((line) => /msg="?serving/.test(line))) {
    if (child.exitCode !== null) throw new Error(lines.join('\n'));
    await sleep(20);
  }
  return { child, lines, url: `http://127.0.0.1:${http}/json` };
}

async function longestDelay(child) {
  child.send('report');
  const [{ longest }] = await once(child, 'message');
  return longest;
}

/** Calls one after the other until it is stopped; the slowest, in milliseconds. */
function callContinuously(url) {
  const calls = { slowest: 0, answered: 0, failed: 0, stop: false };
  const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'x' }] }] });
  calls.done = (async () => {
    while (!calls.stop) {
      const started = performance.now();
      const response = await fetch(url, { method: 'POST', body });
      await response.arrayBuffer();
      calls.slowest = Math.max(calls.slowest, performance.now() - started);
      if (response.status === 200 || response.status === 429) calls.answered += 1;
      else calls.failed += 1;
      await sleep(2);
    }
  })();
  return calls;
}

function largestMemory(pid) {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

async function measure(name, appear) {
  const base = mkdtempSync(join(tmpdir(), 'weir-hostile-'));
  const root = join(base, 'root');
  mkdirSync(join(root, 'config'), { recursive: true });
  writeFileSync(join(root, 'config/shop.yaml'), RULES);
  const { child, lines, url } = await startService(root);
  try {
    // The files are written elsewhere, so that writing them is not measured.
    const folder = join(base, 'next');
    mkdirSync(folder);
    appear(folder);
    const calls = callContinuously(url);
    await sleep(1000);
    await longestDelay(child);
    calls.slowest = 0;
    const seen = lines.length;
    const started = performance.now();
    await moveInto(folder, join(root, 'config'));
    function outcome() {
      return lines.slice(seen).find((line) => /rejected|rules loaded|new rules/i.test(line));
    }
    while (outcome() === undefined && performance.now() - started < PATIENCE * 1000) await sleep(20);
    const took = performance.now() - started;
    await sleep(1000);
    const delay = await longestDelay(child);
    calls.stop = true;
    await calls.done;
    process.stdout.write(
      `${name}\n  outcome after ${(took / 1000).toFixed(1)} s; longest delay of the event loop ${delay.toFixed(0)} ms; ` +
        `slowest call ${calls.slowest.toFixed(0)} ms; ${calls.answered} calls answered, ${calls.failed} failed; ` +
        `${largestMemory(child.pid).toFixed(0)} MiB\n  ${(outcome() ?? 'no outcome').slice(0, 400)}\n`,
    );
  } finally {
    child.kill('SIGKILL');
    rmSync(base, { recursive: true });
  }
}

async function moveInto(from, to) {
  const { readdir, rename } = await import('node:fs/promises');
  for (const each of await readdir(from)) await rename(join(from, each), join(to, each));
}

const chosen = process.argv.slice(2);
for (const [name, appear] of Object.entries(cases)) {
  if (chosen.length === 0 || chosen.some((part) => name.includes(part))) await measure(name, appear);
}

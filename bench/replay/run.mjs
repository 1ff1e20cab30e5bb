// Replays a decision log of a million calls of 100,000 callers, and prints the time and the largest resident memory of
// weir-check. Usage: npm run bench:replay [-- --lines 1000000 --callers 100000 --now]. It runs the compiled code:
// `npm run build` first.
import { spawn } from 'node:child_process';
import { createWriteStream, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    lines: { type: 'string', default: '1000000' },
    callers: { type: 'string', default: '100000' },
    now: { type: 'boolean', default: false },
  },
});
const [lines, callers] = [Number(values.lines), Number(values.callers)];
const folder = mkdtempSync(join(tmpdir(), 'weir-replay-'));
const [log, candidate, present] = ['decisions.jsonl', 'candidate.yaml', 'now.yaml'].map((name) => join(folder, name));

function rules(limit) {
  return `domain: shop
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: ${limit} } }
  - key: path
    value: "/api/*"
    descriptors: [{ key: user, rate_limit: { unit: hour, unit_multiplier: 2, requests_per_unit: ${limit * 4} } }]
`;
}

/** Two hours of calls; the callers with low numbers make most of them. */
async function writeLog() {
  const file = createWriteStream(log);
  const start = Date.UTC(2026, 0, 1);
  for (let index = 0; index < lines; index += 1) {
    const user = `user=customer-${Math.floor(callers * Math.random() ** 2)}`;
    const line = {
      type: 'decision',
      time: new Date(start + (index * 7_200_000) / lines).toISOString(),
      domain: 'shop',
      code: 'OK',
      descriptors: [
        { entries: [user], hits: 1, code: 'OK', reason: 'within_limit', rule: 'shop.user', count: 1 },
        { entries: [`path=/api/${user.length}`, user], code: 'OK', reason: 'no_match' },
      ],
      caller: '10.0.0.7:51234',
    };
    if (!file.write(`${JSON.stringify(line)}\n`)) await new Promise((resolve) => file.once('drain', resolve));
  }
  await finished(file.end());
}

/** The seconds and the largest resident memory of a replay, in MB. */
async function measure() {
  const began = performance.now();
  const args = ['dist/cli/weir-check.js', candidate, '-replay', log, '-json', ...(values.now ? ['-now', present] : [])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  let memory = 0;
  for (; child.exitCode === null; await sleep(50)) {
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    memory = Number(/VmHWM:\s*(\d+)/.exec(status)?.[1] ?? memory);
  }
  return { seconds: (performance.now() - began) / 1000, memory: memory / 1000, exitCode: child.exitCode };
}

try {
  writeFileSync(candidate, rules(3));
  writeFileSync(present, rules(5));
  await writeLog();
  const { seconds, memory, exitCode } = await measure();
  const size = statSync(log).size / 1e6;
  console.log(
    `${lines} lines, ${size.toFixed(0)} MB: ${seconds.toFixed(1)} s, ${memory.toFixed(0)} MB, exit code ${exitCode}`,
  );
} finally {
  rmSync(folder, { recursive: true });
}

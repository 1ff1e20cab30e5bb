// npm run bench:rules: see README.md.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const { loadRules } = createRequire(import.meta.url)('../../dist/sources/loading/load-rules.js');
const BYTES = Number(process.env.BYTES ?? 31_000_000);
const MIB = 1024 * 1024;
const HEAD = 'domain: d\ndescriptors:\n';

/** What a file begins with, a rule with its number, and what the file ends with. */
const SHAPES = {
  'blocks, equal limits': [
    HEAD,
    (i) => `- key: user\n  value: u${i}\n  rate_limit:\n    unit: minute\n    requests_per_unit: 100\n`,
  ],
  'blocks, different limits': [
    HEAD,
    (i) => `- key: user\n  value: u${i}\n  rate_limit:\n    unit: minute\n    requests_per_unit: ${i}\n`,
  ],
  'flow style, a line each': [
    HEAD,
    (i) => `- {key: u, value: u${i}, rate_limit: {unit: day, requests_per_unit: ${i % 10}}}\n`,
  ],
  'with metadata': [
    HEAD,
    (i) => `- key: k${i}\n  rate_limit: {unit: day, requests_per_unit: 1}\n  metadata: {a: 1, b: [x, y]}\n`,
  ],
  'nested four levels deep': [
    HEAD,
    (i) =>
      `- key: k${i}\n  descriptors:\n  - key: a\n    descriptors:\n    - key: b\n      descriptors:\n      - key: c\n        rate_limit: {unit: day, requests_per_unit: 1}\n`,
  ],
  'a key alone': [HEAD, (i) => `- key: k${i}\n`],
  'a list of values': [
    `${HEAD}- key: k\n  rate_limit: {unit: day, requests_per_unit: 1}\n  value_in:\n`,
    (i) => `  - v${i}\n`,
  ],
  'with aliases': [
    `${HEAD}- key: z\n  rate_limit: &l {unit: day, requests_per_unit: 1}\n`,
    (i) => `- {key: u, value: u${i}, rate_limit: *l}\n`,
  ],
  JSON: [
    '{"domain":"d","descriptors":[',
    (i) => `${i ? ',' : ''}{"key":"u","value":"u${i}","rate_limit":{"unit":"day","requests_per_unit":${i % 10}}}`,
    ']}',
  ],
  'an error in each rule': [HEAD, (i) => `- kex: k${i}\n`],
};

function fileOf([head, rule, tail = '']) {
  const parts = [head];
  for (let bytes = head.length, i = 0; bytes < BYTES - 1_000; i += 1) {
    parts.push(rule(i));
    bytes += parts.at(-1).length;
  }
  return new TextEncoder().encode(parts.join('') + tail);
}

/** In MiB. */
function memory(field) {
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync('/proc/self/status', 'latin1'))[1]) / 1024;
}

/** Prints the row of one file, in a process of its own. */
function measure(name) {
  const content = readFileSync(0);
  const before = memory('VmRSS');
  const settings = { mergeDomainConfig: false, backendType: 'memory' };
  loadRules([{ path: 'a.yaml', content }], { form: 'files', settings }).subscribe(({ errors = [] }) => {
    const peak = memory('VmHWM') - before;
    const outcome = errors.length === 0 ? 'loaded' : errors[0].includes(' MiB that ') ? 'too much memory' : 'invalid';
    process.stdout.write(
      `| ${name} | ${peak.toFixed(0)} | ${((peak * MIB) / content.length).toFixed(1)} | ${outcome} |\n`,
    );
    process.exit();
  });
}

if (process.argv[2] !== undefined) measure(process.argv[2]);
else {
  process.stdout.write(`| ${BYTES} bytes | MiB | times the size | outcome |\n|---|---:|---:|---|\n`);
  for (const [name, shape] of Object.entries(SHAPES)) {
    execFileSync(process.execPath, [fileURLToPath(import.meta.url), name], {
      input: fileOf(shape),
      stdio: ['pipe', 'inherit', 'inherit'],
    });
  }
}

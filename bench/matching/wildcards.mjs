// The time to find a rule among the wildcards of one key, by their form, their number and the length of the value, next to trying
// them one after the other in the same run.
import { createRequire } from 'node:module';
import { rule } from '../service/decision-path.mjs';

const require = createRequire(import.meta.url);
const { buildRuleset } = require('../../dist/rules/ruleset.js');
const { compileWildcards } = require('../../dist/rules/wildcards/compile-wildcards.js');
const { Wildcard } = require('../../dist/rules/wildcards/wildcard.js');

const COUNTS = [1, 4, 8, 16, 100, 1_000, 10_000, 100_000];
/** CPU time that a measurement takes at least, in µs, after a warm-up of half of it. */
const ENOUGH = 60_000;

/** Patterns that are tried for a value that none of them matches, but that has much in common with all. */
const forms = [
  { name: 'prefix*', pattern: (index) => `/service/${index}/*`, value: '/service/x' },
  { name: '*suffix', pattern: (index) => `*.${index}.example.com`, value: 'x.example.com' },
  { name: '*infix*', pattern: (index) => `*needle${index}x*`, value: 'a needle y' },
  { name: 'prefix*suffix', pattern: (index) => `/p/${index}/*/list`, value: '/p/x/list' },
  { name: '*one*two*', pattern: (index) => `*one${index}x*two*`, value: 'one two' },
];
const lengths = [
  { name: 'short', fill: (value) => `${value} 12345678` },
  { name: '4 KiB', fill: (value) => `${value} `.repeat(4096).slice(0, 4096) },
];

/** CPU time of this process per call, in ns. */
function measure(find, values) {
  let calls = 0;
  function run(microseconds) {
    const start = process.cpuUsage();
    calls = 0;
    for (;;) {
      for (const value of values) find(value);
      calls += values.length;
      const { user, system } = process.cpuUsage(start);
      if (user + system >= microseconds) return ((user + system) * 1000) / calls;
    }
  }
  run(ENOUGH / 2);
  return run(ENOUGH);
}

function oneByOne(patterns) {
  const wildcards = patterns.map((pattern) => new Wildcard(pattern));
  return (value) => wildcards.findIndex((wildcard) => wildcard.matches(value));
}

function level(patterns) {
  const domain = buildRuleset([
    { domain: 'bench', descriptors: patterns.map((pattern) => rule('path', pattern)) },
  ]).domain('bench');
  return (value) => domain.find('path', value);
}

function milliseconds(work) {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

console.log('form            value    wildcards      weir  one by one  ratio   compiling');
for (const { name: form, pattern, value } of forms) {
  for (const { name: length, fill } of lengths) {
    for (const count of COUNTS) {
      const patterns = Array.from({ length: count }, (_, index) => pattern(index));
      const values = Array.from({ length: 64 }, (_, index) => fill(`${value}${index}`));
      const compiling = milliseconds(() => compileWildcards(patterns));
      const ours = measure(level(patterns), values);
      const theirs = measure(oneByOne(patterns), values);
      console.log(
        `${form.padEnd(14)}  ${length}  ${String(count).padStart(9)} ${ours.toFixed(0).padStart(7)} ns ` +
          `${theirs.toFixed(0).padStart(8)} ns  ${(theirs / ours).toFixed(1).padStart(6)}  ${compiling.toFixed(1).padStart(7)} ms`,
      );
    }
  }
}

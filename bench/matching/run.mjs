// The cost of finding the rule of a descriptor, by the number of rules at its level, and with wildcards. The baseline is a level
// of 10 rules in the same run: a ratio near 1 means that the number of rules does not matter.
import { createRequire } from 'node:module';
import { rule } from '../service/decision-path.mjs';

const require = createRequire(import.meta.url);
const { buildRuleset, matchRule } = require('../../dist/rules/ruleset.js');

const DESCRIPTORS = 1_000;
const ROUNDS = 1_000;

function numbered(count, make) {
  return Array.from({ length: count }, (_, index) => make(index));
}

function spread(count, index) {
  return Math.floor((index * count) / DESCRIPTORS);
}

/** Rules with different values of one key; every descriptor matches the rule with its value. */
function explicit(count) {
  return {
    name: `${count.toLocaleString('en')} rules with a value`,
    rules: numbered(count, (index) => rule('path', `/p/${index}`)),
    entries: (index) => [{ key: 'path', value: `/p/${spread(count, index)}` }],
  };
}

/** Rules with different keys and no values. */
function keys(count) {
  return {
    name: `${count.toLocaleString('en')} rules without a value`,
    rules: numbered(count, (index) => rule(`key-${index}`, '')),
    entries: (index) => [{ key: `key-${spread(count, index)}`, value: 'any' }],
  };
}

/** Patterns with a part at the start and one at the end. */
function wildcards(count, isMiss) {
  return {
    name: `${count} wildcards, ${isMiss ? 'none matches' : 'each matches in turn'}`,
    rules: numbered(count, (index) => rule('path', `/p/${index}/*/end`)),
    entries: (index) => [{ key: 'path', value: isMiss ? '/other/x/end' : `/p/${spread(count, index)}/x/end` }],
  };
}

const hostile = {
  name: '100 wildcards with 20 stars, against "aaa…b"',
  rules: numbered(100, (index) => rule('path', `${'*a'.repeat(20)}${index}`)),
  entries: () => [{ key: 'path', value: `${'a'.repeat(200)}b` }],
};
const nested = {
  name: '3 levels of 100 rules',
  rules: numbered(100, (a) =>
    rule('a', `${a}`, {
      descriptors: numbered(10, (b) => rule('b', `${b}`, { descriptors: numbered(10, (c) => rule('c', `${c}`)) })),
    }),
  ),
  entries: (index) => [
    { key: 'a', value: `${index % 100}` },
    { key: 'b', value: `${index % 10}` },
    { key: 'c', value: `${(index >> 2) % 10}` },
  ],
};

const cases = [
  explicit(10),
  explicit(1_000),
  explicit(100_000),
  keys(10),
  keys(1_000),
  keys(100_000),
  nested,
  wildcards(1, true),
  wildcards(100, true),
  wildcards(100, false),
  hostile,
];

function measure({ rules, entries }) {
  const level = buildRuleset([{ domain: 'bench', descriptors: rules }]).domain('bench');
  const descriptors = numbered(DESCRIPTORS, entries);
  let matched = 0;
  function round() {
    for (const descriptor of descriptors) if (matchRule(level, descriptor) !== undefined) matched += 1;
  }
  for (let warmUp = 0; warmUp < 100; warmUp += 1) round();
  const { user, system } = process.cpuUsage();
  for (let count = 0; count < ROUNDS; count += 1) round();
  const after = process.cpuUsage();
  return ((after.user + after.system - user - system) * 1000) / (ROUNDS * DESCRIPTORS);
}

let baseline;
for (const each of cases) {
  const cost = measure(each);
  baseline ??= cost;
  console.log(`${each.name.padEnd(46)} ${cost.toFixed(0).padStart(6)} ns  × ${(cost / baseline).toFixed(1)}`);
}

// The CPU time of the slowest requests that are accepted, from the decoded request to the encoded response, counted in memory.
import { createRequire } from 'node:module';
import { decisionPath, rule } from '../service/decision-path.mjs';

const require = createRequire(import.meta.url);

function load(path) {
  return require(`../../dist/${path}.js`);
}

const { encodeResponse } = load('grpc/rate-limit/encode-response');
const { MAX_DESCRIPTORS, MAX_ENTRIES, MAX_ENTRIES_PER_DESCRIPTOR, MAX_MATCHING_STEPS, MAX_TEXT } =
  load('limiter/request-bounds');
const { Statistics } = load('statistics/statistics');

const CALLS = 30;
const WARM_UP = 10;

function numbered(count, make) {
  return Array.from({ length: count }, (_, index) => make(index));
}

function fill(text, length) {
  return text.repeat(Math.ceil(length / text.length)).slice(0, length);
}

let values = 0;
/** A value that no other call had, so that its counter is new. */
function fresh(text, length) {
  values += 1;
  return `${String(values).padStart(9, '0')}${fill(text, length - 9)}`;
}

/** All the text that a request may have, in one value. */
function long(text) {
  return [[{ key: 'k', value: fresh(text, MAX_TEXT - 100) }]];
}

/** As many descriptors as a request may have, with all the text that it may have. */
function many(text) {
  const length = Math.floor(MAX_TEXT / MAX_DESCRIPTORS) - 2;
  return numbered(MAX_DESCRIPTORS, () => [{ key: 'k', value: fresh(text, length) }]);
}

function nested(depth, more) {
  let inner = rule('k', '', more);
  for (let level = 1; level < depth; level += 1) inner = rule('k', '', { rateLimit: undefined, descriptors: [inner] });
  return inner;
}

function limitOf(more) {
  return { rateLimit: { ...rule('k').rateLimit, ...more } };
}

function metadata(rules, members) {
  return Object.fromEntries(numbered(members, (index) => [`member-${rules}-${index}`, fill('x', 40)]));
}

const plain = [rule('k')];
const perDescriptor = MAX_ENTRIES / MAX_DESCRIPTORS;
const cases = [
  { name: 'one descriptor with a short value', rules: plain, call: () => [[{ key: 'k', value: fresh('', 9) }]] },
  { name: 'one value with all text', rules: plain, call: () => long('abc') },
  { name: '1,000 descriptors with all text', rules: plain, call: () => many('abc') },
  {
    name: '1,000 equal descriptors with all text',
    rules: plain,
    call: () => numbered(1, () => many('abc')[0]).flatMap((each) => numbered(MAX_DESCRIPTORS, () => each)),
  },
  {
    name: '1,000 descriptors of 10 entries, nested rules',
    rules: [nested(perDescriptor)],
    call: () => numbered(MAX_DESCRIPTORS, () => numbered(perDescriptor, () => ({ key: 'k', value: fresh('', 9) }))),
  },
  {
    name: '100 descriptors of 100 entries, detailed_metric',
    rules: [nested(MAX_ENTRIES_PER_DESCRIPTOR, { detailedMetric: true })],
    call: () =>
      numbered(MAX_ENTRIES / MAX_ENTRIES_PER_DESCRIPTOR, () =>
        numbered(MAX_ENTRIES_PER_DESCRIPTOR, () => ({ key: 'k', value: fresh('', 9) })),
      ),
  },
  { name: 'detailed_metric, all text', rules: [rule('k', '', { detailedMetric: true })], call: () => many('abc') },
  {
    name: 'limits in the request, all text',
    rules: plain,
    limit: { requestsPerUnit: 5, unit: load('rules/unit').unitByName('MINUTE') },
    call: () => many('abc'),
  },
  {
    name: '8 wildcards, tried one by one, all text',
    rules: numbered(8, (index) => rule('k', `*${fill('a', 20 - index)}b*`)),
    call: () => long('a'),
  },
  {
    name: '1,000 wildcards *needleN*, all text',
    rules: numbered(1_000, (index) => rule('k', `*needle${index}x*`)),
    call: () => long('needle needle12 '),
  },
  {
    name: '100,000 wildcards *<number>x*, digits, almost all steps',
    rules: numbered(100_000, (index) => rule('k', `*${Math.imul(index, 0x9e3779b1) >>> 0}x*`)),
    call: () => {
      const digits = numbered(5_000, (index) => Math.imul(index, 0x85ebca6b) >>> 0).join('');
      return [[{ key: 'k', value: fresh(digits, MAX_MATCHING_STEPS / 8 - 100) }]];
    },
  },
  {
    name: '1,000 wildcards of two parts, almost all steps',
    rules: numbered(1_000, (index) => rule('k', `*${fill('a', index + 1)}*x*`)),
    call: () => [[{ key: 'k', value: fresh('a', 500) }]],
  },
  {
    name: '40,000 wildcards of three parts, almost all steps',
    rules: numbered(40_000, (index) => rule('k', `*p${Math.floor(index / 200)}y*q${index % 200}y*z`)),
    call: () =>
      numbered(4, () => [
        {
          key: 'k',
          value: fresh('', 9) + ['p', 'q'].flatMap((part) => numbered(200, (index) => `${part}${index}y`)).join(''),
        },
      ]),
  },
  {
    name: '1,000 descriptors of a rule that replaces 10,000',
    rules: [rule('k', '', limitOf({ name: 'all', replaces: numbered(10_000, (index) => `name-${index}`) }))],
    call: () => many('abc'),
  },
  {
    name: 'dynamic metadata, all text',
    rules: plain,
    options: { dynamicMetadata: true },
    call: () => many('abc'),
  },
  {
    name: 'dynamic metadata of one rule of 100 KB, 1,000 times',
    rules: [rule('k', '', { metadata: metadata(0, 1_800) })],
    options: { dynamicMetadata: true },
    call: () => many('abc'),
  },
  {
    name: 'dynamic metadata of 1,000 rules, 1 KB each',
    rules: numbered(1_000, (index) => rule('k', `v${index}`, { metadata: metadata(index, 18) })),
    options: { dynamicMetadata: true },
    call: () => numbered(1_000, (index) => [{ key: 'k', value: `v${index}` }]),
  },
  {
    name: 'over the limit, local cache, STOP_CACHE_KEY_INCREMENT…',
    rules: [rule('k', '', limitOf({ requestsPerUnit: 0 }))],
    options: { localCacheBytes: 100_000_000, stopIncrementWhenOverLimit: true },
    call: () => many('abc'),
  },
];

/** @returns CPU time of this process per call, in ms, and the outcome */
async function measure({ rules, options, call, limit }) {
  const decide = decisionPath(load, { rules, options, statistics: new Statistics(10_000) });
  const times = [];
  let outcome;
  for (let round = 0; round < CALLS; round += 1) {
    const descriptors = call().map((entries) => ({ entries, limit, hitsAddend: -1, isNegativeHits: false }));
    const start = process.cpuUsage();
    outcome = await new Promise((resolve) => {
      decide(
        { domain: 'bench', descriptors, hitsAddend: 0 },
        {
          verdict: (verdict) => resolve(`${encodeResponse(verdict).length} bytes`),
          error: ({ code }) => resolve(code),
        },
      );
    });
    const { user, system } = process.cpuUsage(start);
    times.push((user + system) / 1000);
  }
  const measured = times.slice(WARM_UP).sort((one, other) => one - other);
  return { median: measured[measured.length >> 1], most: measured.at(-1), outcome };
}

for (const each of cases) {
  const { median, most, outcome } = await measure(each);
  console.log(
    `${each.name.padEnd(56)} ${median.toFixed(2).padStart(6)} ms, at most ${most.toFixed(2).padStart(6)} ms  ${outcome}`,
  );
}
process.exit(0);

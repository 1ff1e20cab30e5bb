// Makes deliberate faults in the sources, one at a time and each in a copy of this checkout, runs the tests of the fast
// suite that import the changed file, and prints which faults no test caught. Exits with 1 if fewer than 90 % were
// caught.
//
//   node scripts/mutate.mjs                                   120 faults, spread over FOLDERS
//   node scripts/mutate.mjs --count 20 src/limiter            20 faults in src/limiter
//   node scripts/mutate.mjs --count 5 src/rules/ruleset.ts    5 faults in one file
//   node scripts/mutate.mjs --tests test/counting src/counting   tests of one folder only; several: --tests again
//   node scripts/mutate.mjs --seed 2 --jobs 1                 other faults; one copy instead of two
//
// In Lua, which has the tag `lua`, faults are made too; all of those in the script that counts:
//
//   node scripts/mutate.mjs --count 1000 src/sinks/counters/kvstore/count-script.ts
//   node scripts/mutate.mjs --count 1000 src/sinks/counters/kvstore/count-algorithms.ts
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, lstatSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parseSync } from '@swc/core';
import { luaFaults } from './lua-faults.mjs';
import { ROOT, printStatus } from './workspace.mjs';

const FOLDERS = [
  'src/counting',
  'src/limiter',
  'src/rules',
  'src/streams',
  'src/sinks/counters',
  'src/grpc',
  'src/http/json',
];
/** The share of faults that the tests have to catch. */
const ENOUGH = 0.9;
/** Tests of these folders start the built service, in which the fault is not. */
const OF_THE_BUILD = /^test\/(?:attacks|e2e|integration\/(?:statistics|traces))\//u;
/**
 * Tests that take so many times as long with a fault, and at least so many milliseconds, are ended; the fault counts as
 * caught.
 */
const TIMEOUT_FACTOR = 4;
const LEAST_TIMEOUT_MS = 120_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '120' },
    seed: { type: 'string', default: '1' },
    jobs: { type: 'string', default: '2' },
    tests: { type: 'string', multiple: true, default: [] },
  },
});

const OPERATORS = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
  '+': '-',
  '-': '+',
  '*': '/',
};

/** The faults that can be made at a node: `[from, to, replacement]`, with offsets in bytes. */
function faultsAt(node, text) {
  const { start, end } = node.span;
  switch (node.type) {
    case 'BinaryExpression': {
      const replacement = OPERATORS[node.operator];
      const isText = [node.left, node.right].some(({ type }) => type === 'StringLiteral' || type === 'TemplateLiteral');
      if (replacement === undefined || (node.operator === '+' && isText)) return [];
      const at = text.indexOf(node.operator, node.left.span.end, 'utf8');
      return at < node.right.span.start ? [[at, at + node.operator.length, replacement]] : [];
    }
    case 'NumericLiteral':
      return [[start, end, String(node.value + 1)]];
    case 'BooleanLiteral':
      return [[start, end, String(!node.value)]];
    case 'IfStatement':
      return [
        [
          node.test.span.start,
          node.test.span.end,
          `!(${text.toString('utf8', node.test.span.start, node.test.span.end)})`,
        ],
      ];
    case 'ExpressionStatement': {
      const isCall = node.expression.type === 'CallExpression' && node.expression.callee.type !== 'Super';
      return isCall ? [[start, end, ';']] : [];
    }
    case 'TaggedTemplateExpression':
      return node.tag.value === 'lua' ? node.template.quasis.flatMap((quasi) => luaFaultsAt(quasi.span, text)) : [];
    default:
      return [];
  }
}

/** The faults in a piece of a Lua text, in which expressions are replaced. */
function luaFaultsAt({ start, end }, text) {
  const lua = text.toString('utf8', start, end);
  return luaFaults(lua).map(([from, to, replacement]) => {
    const [before, original] = [lua.slice(0, from), lua.slice(from, to)].map((each) => Buffer.byteLength(each));
    return [start + before, start + before + original, replacement];
  });
}

/** Moves the offsets of a syntax tree by `-by`: those of swc continue from one file to the next. */
function visit(node, by, onNode) {
  if (Array.isArray(node)) {
    for (const each of node) visit(each, by, onNode);
  } else if (node !== null && typeof node === 'object') {
    // Types are not there when the tests run.
    if (/^Ts(?!As|NonNull|Satisfies|ParameterProperty)/u.test(node.type ?? '')) return;
    if (typeof node.span?.start === 'number') {
      node.span.start -= by;
      node.span.end -= by;
    }
    for (const key of Object.keys(node)) if (key !== 'span') visit(node[key], by, onNode);
    if (typeof node.type === 'string' && typeof node.span?.start === 'number') onNode(node);
  }
}

function faultsOf(file) {
  const text = readFileSync(join(ROOT, file));
  const first = parseSync('', { syntax: 'typescript' }).span.end;
  const tree = parseSync(text.toString('utf8'), { syntax: 'typescript', target: 'es2022' });
  const faults = [];
  visit(tree.body, first, (node) => {
    for (const [from, to, replacement] of faultsAt(node, text)) {
      const line = text.toString('utf8', 0, from).split('\n').length;
      faults.push({ file, line, from, to, replacement, original: text.toString('utf8', from, to) });
    }
  });
  return faults;
}

/** A generator of numbers from 0 to 1 that are the same for the same seed (mulberry32). */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Picks faults at random: of each folder as many as its share of the code, and at least a few. */
function pickFaults(paths, count, random) {
  const byPath = paths.map((path) => {
    const files = spawnSync('git', ['ls-files', path], { cwd: ROOT, encoding: 'utf8' }).stdout.trim().split('\n');
    const faults = files.filter((file) => file.endsWith('.ts')).flatMap(faultsOf);
    return faults.map((fault) => ({ fault, rank: random() })).toSorted((a, b) => a.rank - b.rank);
  });
  const all = byPath.reduce((sum, faults) => sum + faults.length, 0);
  const least = Math.floor(count / paths.length / 2);
  return byPath.flatMap((faults) =>
    faults.slice(0, Math.max(least, Math.ceil((count * faults.length) / all))).map(({ fault }) => fault),
  );
}

function makeCopy() {
  const copy = mkdtempSync(join(tmpdir(), 'weir-mutate-'));
  const files = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const file of files.stdout.trim().split('\n')) {
    // Links as they are: some of the fixtures lead nowhere on purpose.
    if (lstatSync(join(ROOT, file), { throwIfNoEntry: false })) {
      cpSync(join(ROOT, file), join(copy, file), { verbatimSymlinks: true });
    }
  }
  cpSync(join(ROOT, 'src/gen'), join(copy, 'src/gen'), { recursive: true });
  for (const folder of ['node_modules', 'dist', '.servers', 'packages/versioning/dist'])
    symlinkSync(join(ROOT, folder), join(copy, folder));
  return copy;
}

/** Process groups of Jest, which a fault may keep busy for ever. */
const running = new Set();

/**
 * Runs Jest in a copy for so many milliseconds at most; resolves with its exit code, null if it did not end in time,
 * and its output.
 */
async function jest(copy, args, timeout) {
  const child = spawn(process.execPath, ['node_modules/jest/bin/jest.js', '--ci', '--silent', '-w', '1', ...args], {
    cwd: copy,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (output += text));
  const timer = setTimeout(() => process.kill(-Number(child.pid), 'SIGKILL'), timeout);
  running.add(Number(child.pid));
  const status = await new Promise((resolve) => child.once('exit', resolve));
  running.delete(Number(child.pid));
  clearTimeout(timer);
  return { status, output };
}

/** How many words of a file's path are in a test's path too. */
function nearness(file, test) {
  const words = test.split(/[/.-]/u);
  return file.split(/[/.-]/u).filter((word) => words.includes(word)).length;
}

function isChosen(test) {
  return values.tests.length === 0 || values.tests.some((folder) => test.startsWith(folder));
}

/** The tests that import a file, in groups: first those of the most similar path, which most often catch its faults. */
const related = new Map();
function testsOf(copy, file) {
  if (!related.has(file)) {
    const args = ['node_modules/jest/bin/jest.js', '--listTests', '--findRelatedTests', file];
    const { stdout } = spawnSync(process.execPath, args, { cwd: copy, encoding: 'utf8' });
    const groups = [];
    for (const line of stdout.split('\n').filter((each) => each.endsWith('.test.ts'))) {
      const path = line.slice(copy.length + 1);
      if (!OF_THE_BUILD.test(path) && isChosen(path)) (groups[nearness(file, path)] ??= []).push(path);
    }
    related.set(file, groups.filter(Boolean).toReversed());
  }
  return related.get(file);
}

/**
 * Runs the tests with a fault. Resolves with `caught` or, when they had to be ended, `hung`; undefined when they pass.
 *
 * @param limitOf returns the most milliseconds that a group of tests may take
 */
async function outcomeOf(copy, { file, from, to, replacement }, limitOf) {
  const groups = testsOf(copy, file);
  const text = readFileSync(join(copy, file));
  writeFileSync(join(copy, file), Buffer.concat([text.subarray(0, from), Buffer.from(replacement), text.subarray(to)]));
  try {
    for (const group of groups) {
      const { status } = await jest(copy, ['--bail', '--runTestsByPath', ...group], limitOf(group));
      if (status !== 0) return status === null ? 'hung' : 'caught';
    }
    return undefined;
  } finally {
    writeFileSync(join(copy, file), text);
  }
}

const faults = pickFaults(
  positionals.length > 0 ? positionals : FOLDERS,
  Number(values.count),
  randomFrom(Number(values.seed)),
);
const copies = Array.from({ length: Number(values.jobs) }, makeCopy);
process.on('exit', () => {
  for (const group of running) process.kill(-group, 'SIGKILL');
  for (const copy of copies) rmSync(copy, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

const needed = [...new Set(faults.flatMap(({ file }) => testsOf(copies[0], file).flat()))];
printStatus(`${faults.length} faults; first, the ${needed.length} test files that import their files, without a fault`);
const begun = performance.now();
const report = join(copies[0], 'report.json');
const { status, output } = await jest(
  copies[0],
  ['--json', '--outputFile', report, '--runTestsByPath', ...needed],
  2 ** 30,
);
if (status !== 0) {
  printStatus(`the tests fail without a fault:\n${output}`);
  process.exit(1);
}
const durations = new Map(
  JSON.parse(readFileSync(report, 'utf8')).testResults.map(({ name, startTime, endTime }) => [
    name.slice(copies[0].length + 1),
    endTime - startTime,
  ]),
);
/** What Jest takes in addition to the tests. */
const overhead = [...durations.values()].reduce((rest, duration) => rest - duration, performance.now() - begun);
function timeoutOf(group) {
  const usual = group.reduce((sum, test) => sum + durations.get(test), overhead);
  return Math.max(LEAST_TIMEOUT_MS, TIMEOUT_FACTOR * usual);
}

const results = [];
const queue = [...faults];
async function work(copy) {
  for (let fault = queue.shift(); fault !== undefined; fault = queue.shift()) {
    const outcome = await outcomeOf(copy, fault, timeoutOf);
    results.push({ ...fault, caught: outcome !== undefined });
    const { file, line, original, replacement } = fault;
    const change = `${original.replaceAll(/\s+/gu, ' ')} → ${replacement.replaceAll(/\s+/gu, ' ')}`;
    console.log(`${(outcome ?? 'SURVIVED').padEnd(8)} ${file}:${line}  ${change}`);
  }
}
await Promise.all(copies.map(work));

for (const folder of positionals.length > 0 ? positionals : FOLDERS) {
  const own = results.filter(({ file }) => file.startsWith(folder));
  console.log(`${folder}: ${own.filter(({ caught }) => caught).length} of ${own.length} caught`);
}
const caught = results.filter((result) => result.caught).length;
console.log(`${caught} of ${results.length} faults caught (${((100 * caught) / results.length).toFixed(1)} %)`);
process.exitCode = caught / results.length >= ENOUGH ? 0 : 1;

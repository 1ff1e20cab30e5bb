// How long a reload of many rules delays decisions: npm run bench:reload -- [rules] [reloads]
// Needs a build (npm run build). The event loop spins as it does in a service under full load; its longest turn during a reload is
// the longest delay of a request. Wall-clock times include the time that other processes use the cores: look at the median. Each
// reload replaces the rule folder by one rename.
import { closeSync, mkdirSync, mkdtempSync, openSync, readSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const { ruleFileSource } = createRequire(import.meta.url)('../../dist/sources/rule-files/rule-file-source.js');

const RULES = Number(process.argv[2] ?? 100_000);
const RELOADS = Number(process.argv[3] ?? 5);

function rule(indent, value, limit) {
  return ruleOf(indent, { key: 'user', value: `u${value}` }, limit);
}

function ruleOf(indent, { key, value }, limit) {
  return (
    `${indent}- key: ${key}\n${indent}  value: '${value}'\n` +
    `${indent}  rate_limit:\n${indent}    unit: minute\n${indent}    requests_per_unit: ${limit}\n`
  );
}

function numbers(count) {
  return Array.from({ length: count }, (_, i) => i);
}

/** The files by name, for RULES rules; each version has other limits. */
const shapes = {
  'one file, one level': (version) => ({
    'all.yaml': `domain: all\ndescriptors:\n${numbers(RULES)
      .map((i) => rule('  ', i, version))
      .join('')}`,
  }),
  'one file, one rule that all others are nested in': (version) => ({
    'all.yaml': `domain: all\ndescriptors:\n  - key: top\n    descriptors:\n${numbers(RULES)
      .map((i) => rule('      ', i, version))
      .join('')}`,
  }),
  'one file, wildcards of one key': (version) => ({
    'all.yaml': `domain: all\ndescriptors:\n${numbers(RULES)
      .map((i) => ruleOf('  ', { key: 'user', value: `*u${i}x*` }, version))
      .join('')}`,
  }),
  'one file, 20 wildcards of each key': (version) => ({
    'all.yaml': `domain: all\ndescriptors:\n${numbers(RULES)
      .map((i) => ruleOf('  ', { key: `user-${Math.floor(i / 20)}`, value: `*u${i}x*` }, version))
      .join('')}`,
  }),
  '1,000 files of a domain each': (version) =>
    Object.fromEntries(
      numbers(1000).map((file) => [
        `${file}.yaml`,
        `domain: d${file}\ndescriptors:\n${numbers(Math.ceil(RULES / 1000))
          .map((i) => rule('  ', i, version))
          .join('')}`,
      ]),
    ),
};

/**
 * Spins the event loop and measures its longest turn: in wall-clock time, and in CPU time of the thread (from /proc, Linux only),
 * which is what the turn costs when no other process uses the core.
 */
class Turns {
  #longest = { clock: 0, ran: 0 };
  #lastClock = 0;
  #lastRan = 0;
  #isSpinning = true;
  // The main thread, which is this one.
  #statistics = openSync('/proc/self/schedstat');
  #buffer = Buffer.alloc(64);

  constructor() {
    const turn = () => {
      const clock = performance.now();
      const ran = this.#ran();
      this.#longest.clock = Math.max(this.#longest.clock, clock - this.#lastClock);
      this.#longest.ran = Math.max(this.#longest.ran, ran - this.#lastRan);
      this.#lastClock = clock;
      this.#lastRan = ran;
      if (this.#isSpinning) setImmediate(turn);
      else closeSync(this.#statistics);
    };
    this.longest();
    setImmediate(turn);
  }

  /** The longest turn since the last call, in milliseconds. */
  longest() {
    const longest = this.#longest;
    this.#longest = { clock: 0, ran: 0 };
    this.#lastClock = performance.now();
    this.#lastRan = this.#ran();
    return longest;
  }

  stop() {
    this.#isSpinning = false;
  }

  #ran() {
    const length = readSync(this.#statistics, this.#buffer, 0, this.#buffer.length, 0);
    return Number(this.#buffer.latin1Slice(0, length).split(' ', 1)[0]) / 1e6;
  }
}

function show({ clock, ran }) {
  return `${clock.toFixed(1).padStart(5)} (ran ${ran.toFixed(1).padStart(4)})`;
}

async function measure(name, filesOf) {
  const base = mkdtempSync(join(tmpdir(), 'weir-reload-'));
  function write(version) {
    const folder = join(base, `v${version}/config`);
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(filesOf(version))) writeFileSync(join(folder, file), text);
  }
  let onEvent;
  const { events$ } = ruleFileSource({
    root: join(base, 'root'),
    subdirectory: '',
    appDirectory: 'config',
    ignoreDotFiles: false,
    watchRoot: true,
    mergeDomainConfigs: false,
  });
  write(0);
  renameSync(join(base, 'v0'), join(base, 'root'));
  const first = new Promise((resolve) => (onEvent = resolve));
  const subscription = events$.subscribe((event) => onEvent(event));
  if ((await first).kind !== 'loaded') throw new Error('the rules should be good');
  process.stdout.write(`${name}, ${RULES} rules\n`);
  const turnsWhileLoading = [];
  for (let version = 1; version <= RELOADS; version += 1) {
    write(version);
    const turns = new Turns();
    await new Promise((resolve) => setTimeout(resolve, 300));
    const before = turns.longest();
    const started = performance.now();
    const loaded = new Promise((resolve) => (onEvent = resolve));
    renameSync(join(base, 'root'), join(base, `old${version}`));
    renameSync(join(base, `v${version}`), join(base, 'root'));
    await loaded;
    const took = performance.now() - started;
    const longest = turns.longest();
    // The old rules are garbage now; collecting them is part of the cost of the reload.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    const after = turns.longest();
    turns.stop();
    turnsWhileLoading.push(longest);
    process.stdout.write(
      `  loaded after ${took.toFixed(0).padStart(5)} ms; longest turn, ms: before ${show(before)}, while loading ${show(longest)}, ` +
        `in the 2 s after ${show(after)}; ${Math.round(process.memoryUsage().rss / 2 ** 20)} MiB\n`,
    );
  }
  function median(of) {
    return turnsWhileLoading.map(of).sort((a, b) => a - b)[Math.floor(RELOADS / 2)];
  }
  const typical = { clock: median(({ clock }) => clock), ran: median(({ ran }) => ran) };
  process.stdout.write(`  median of the longest turns while loading, ms: ${show(typical)}\n`);
  subscription.unsubscribe();
  rmSync(base, { recursive: true });
}

for (const [name, filesOf] of Object.entries(shapes)) await measure(name, filesOf);

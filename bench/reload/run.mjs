// How long a reload of many rules keeps a service from deciding: npm run bench:reload -- [rules] [reloads]
// Needs a build (npm run build). The event loop spins as that of a service under full load does; its longest turn during a
// reload is what a request waits at most. Where other processes want the cores too, the clock tells of them as well: look at
// the median. A rule set is put in the place of another by one rename.
import { closeSync, mkdirSync, mkdtempSync, openSync, readSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const { ruleFileSource } = createRequire(import.meta.url)('../../dist/sources/rule-files/rule-file-source.js');

const RULES = Number(process.argv[2] ?? 100_000);
const RELOADS = Number(process.argv[3] ?? 5);

const rule = (indent, value, limit) =>
  `${indent}- key: user\n${indent}  value: u${value}\n` +
  `${indent}  rate_limit:\n${indent}    unit: minute\n${indent}    requests_per_unit: ${limit}\n`;
const numbers = (count) => Array.from({ length: count }, (_, i) => i);

/** Files by name, for so many rules; the limits tell one version from another. */
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
 * Spins the event loop and finds its longest turn: by the clock, and by how long its thread ran in it (Linux tells), which is
 * what a turn costs where other processes do not take the core away.
 */
class Turns {
  #longest = { clock: 0, ran: 0 };
  #lastClock = 0;
  #lastRan = 0;
  #isSpinning = true;
  // The process's first thread, which is this one.
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

  /** The longest turn since this was last asked, in milliseconds. */
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

const show = ({ clock, ran }) => `${clock.toFixed(1).padStart(5)} (ran ${ran.toFixed(1).padStart(4)})`;

async function measure(name, filesOf) {
  const base = mkdtempSync(join(tmpdir(), 'weir-reload-'));
  const write = (version) => {
    const folder = join(base, `v${version}/config`);
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(filesOf(version))) writeFileSync(join(folder, file), text);
  };
  let told;
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
  const first = new Promise((resolve) => (told = resolve));
  const subscription = events$.subscribe((event) => told(event));
  if ((await first).kind !== 'loaded') throw new Error('the rules should be good');
  process.stdout.write(`${name}, ${RULES} rules\n`);
  const turnsWhileLoading = [];
  for (let version = 1; version <= RELOADS; version += 1) {
    write(version);
    const turns = new Turns();
    await new Promise((resolve) => setTimeout(resolve, 300));
    const before = turns.longest();
    const started = performance.now();
    const loaded = new Promise((resolve) => (told = resolve));
    renameSync(join(base, 'root'), join(base, `old${version}`));
    renameSync(join(base, `v${version}`), join(base, 'root'));
    await loaded;
    const took = performance.now() - started;
    const longest = turns.longest();
    // The old rules are garbage from here on: what collecting them costs belongs to the reload.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    const after = turns.longest();
    turns.stop();
    turnsWhileLoading.push(longest);
    process.stdout.write(
      `  loaded after ${took.toFixed(0).padStart(5)} ms; longest turn, ms: before ${show(before)}, while loading ${show(longest)}, ` +
        `in the 2 s after ${show(after)}; ${Math.round(process.memoryUsage().rss / 2 ** 20)} MiB\n`,
    );
  }
  const median = (of) => turnsWhileLoading.map(of).sort((a, b) => a - b)[Math.floor(RELOADS / 2)];
  const typical = { clock: median(({ clock }) => clock), ran: median(({ ran }) => ran) };
  process.stdout.write(`  median of the longest turns while loading, ms: ${show(typical)}\n`);
  subscription.unsubscribe();
  rmSync(base, { recursive: true });
}

for (const [name, filesOf] of Object.entries(shapes)) await measure(name, filesOf);

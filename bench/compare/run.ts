// npm run bench:go, bench:grpc-server, bench:kvstore, bench:limits, bench:pace and bench:plaincache: see README.md.
import net from 'node:net';
import { parseArgs } from 'node:util';
import { type Comparison, compare, compareAtRates, comparisonTable } from '../suite/compare';
import { opening } from '../suite/load/frames.cjs';
import { durationsOf } from '../suite/options';
import { type StartContender, goService, server, weir } from '../suite/processes/contenders';
import { startStore } from '../suite/processes/stores';
import { LOADS, type LoadName, type RuleKind, type Settings } from '../suite/scenarios/loads';
import type { StoreName } from '../suite/scenarios/scenarios';

/** Loads that are measured on the same services. */
interface Part {
  readonly store: StoreName;
  readonly loads: readonly LoadName[];
  /** Servers to compare weir with. */
  readonly servers?: readonly string[];
  /** Other rules, with which weir is compared. */
  readonly kinds?: readonly RuleKind[];
  /** Other settings, with which weir is compared, by title. */
  readonly others?: Readonly<Record<string, Settings>>;
  /** Settings of weir in addition to those of the store. */
  readonly settings?: Settings;
  /** Calls per second; without it, at saturation and a quarter of it. */
  readonly rates?: readonly number[];
  /** Whether to measure each rate a second time while the store stalls. */
  readonly stalls?: boolean;
  /** Whether to measure the memory of idle connections, too. */
  readonly isIdle?: boolean;
}

const COUNTED: readonly LoadName[] = ['hot-key', '10k-keys', '3-descriptors'];
const EXACT: Settings = { LEASES: 'off' };
const LEASED: Settings = { LEASES: 'auto' };
const MEMORY: Settings = { BACKEND_TYPE: 'memory' };
const WORKERS: Settings = { ...MEMORY, WORKERS: '2' };

/** By command, the parts of it, which can be named. */
const SUITES: Readonly<Record<string, Readonly<Record<string, Part>>>> = {
  'grpc-server': {
    all: {
      store: 'memory',
      loads: ['10k-keys', 'deadlines'],
      servers: ['grpc-js', 'node-http2', 'http2'],
      isIdle: true,
    },
  },
  go: {
    exact: { store: 'redis', loads: [...COUNTED, 'json'] },
    leases: { store: 'redis', loads: ['10-keys'], others: { memory: MEMORY }, settings: LEASED, rates: [4_000] },
  },
  kvstore: { all: { store: 'redis', loads: COUNTED, servers: ['ioredis'] } },
  limits: {
    algorithms: {
      store: 'redis',
      loads: ['hot-key', '10k-keys'],
      kinds: ['sliding_window', 'token_bucket', 'block_for', 'rate_limits', 'all_or_nothing'],
    },
    'hot-keys': {
      store: 'redis',
      loads: ['hot-key', '100-keys'],
      others: { 'without leases': EXACT, memory: MEMORY },
      settings: LEASED,
    },
    'one-key-300': {
      store: 'redis',
      loads: ['hot-key'],
      others: { 'without leases': EXACT },
      settings: LEASED,
      rates: [300],
    },
    '100-keys-300': {
      store: 'redis',
      loads: ['100-keys'],
      others: { 'without leases': EXACT },
      settings: LEASED,
      rates: [30_000],
    },
    'cold-keys': { store: 'redis', loads: ['100k-keys'], others: { 'without leases': EXACT }, settings: LEASED },
    workers: {
      store: 'memory',
      loads: ['hot-key', '100-keys'],
      others: { 'one process': MEMORY, 'without leases': { ...WORKERS, ...EXACT } },
      settings: { ...WORKERS, ...LEASED },
    },
    stalls: {
      store: 'redis',
      loads: ['10-keys'],
      others: { 'without leases': EXACT },
      settings: LEASED,
      rates: [4_000],
      stalls: true,
    },
  },
  pace: { all: { store: 'memory', loads: ['10k-keys', 'json'], servers: ['floor'], rates: [1_000, 4_000] } },
  plaincache: { all: { store: 'memcached', loads: COUNTED, servers: ['memjs'] } },
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '1' },
    against: { type: 'string' },
    go: { type: 'string' },
    rates: { type: 'string' },
    idle: { type: 'string', default: '10000' },
  },
});

/** Resident memory per idle connection, in bytes. */
async function idleMemory(
  start: StartContender,
  count: number,
): Promise<Readonly<Record<'title', string> & Record<'memory', number>>> {
  await using store = await startStore('memory');
  await using contender = await start(LOADS['10k-keys'], store);
  const before = await contender.memory!();
  const sockets: net.Socket[] = [];
  for (let opened = 0; opened < count; opened += 1) {
    const socket = net.connect(contender.target);
    socket.write(opening());
    await new Promise((resolve) => socket.once('data', resolve));
    sockets.push(socket);
  }
  const memory = ((await contender.memory!()) - before) / count;
  for (const socket of sockets) socket.destroy();
  return { title: contender.title, memory };
}

/** The services of a part, weir last. */
function contendersOf({ servers = [], kinds = [], others = {}, settings = {} }: Part): readonly StartContender[] {
  const go = values.go === undefined ? [] : [goService(values.go)];
  const last = weir('weir', settings);
  // With another build, only that one: the others are measured to know where weir stands.
  if (values.against !== undefined) return [...go, weir('before', settings, { dist: values.against }), last];
  return [
    ...servers.map(server),
    ...go,
    ...Object.entries(others).map(([title, other]) => weir(title, other)),
    ...kinds.map((kind) => weir(kind, {}, { kind })),
    last,
  ];
}

async function compareAll(part: Part): Promise<readonly Comparison[]> {
  const starts = contendersOf(part);
  const rates = values.rates === undefined ? part.rates : values.rates.split(',').map(Number);
  const options = { durations: durationsOf(Number(values.seconds)), rounds: Number(values.rounds) };
  const comparisons: Comparison[] = [];
  for (const load of part.loads) {
    const scenario = { name: `${part.store}/${load}`, store: part.store, load };
    const comparison =
      rates === undefined
        ? await compare(scenario, starts, { ...options, shares: [0.25] })
        : await compareAtRates(scenario, starts, { ...options, rates, stalls: part.stalls });
    comparisons.push(comparison);
  }
  return comparisons;
}

async function main(): Promise<void> {
  const [name = '', ...chosen] = positionals;
  const suite = SUITES[name];
  if (suite === undefined) throw new Error(`name one of ${Object.keys(SUITES).join(', ')}`);
  const unknown = chosen.find((part) => suite[part] === undefined);
  if (unknown !== undefined) throw new Error(`${unknown} is none of the parts ${Object.keys(suite).join(', ')}`);
  const parts = Object.entries(suite).flatMap(([title, part]) =>
    chosen.length === 0 || chosen.includes(title) ? [part] : [],
  );
  const comparisons: Comparison[] = [];
  for (const part of parts) comparisons.push(...(await compareAll(part)));
  process.stdout.write(`${comparisonTable(comparisons)}\n`);
  for (const start of parts.filter(({ isIdle }) => isIdle === true).flatMap(contendersOf)) {
    const { title, memory } = await idleMemory(start, Number(values.idle));
    process.stdout.write(`${title}: ${(memory / 1_024).toFixed(1)} KiB per idle connection\n`);
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);

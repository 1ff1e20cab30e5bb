// npm run bench:go, bench:grpc-server, bench:kvstore, bench:limits, bench:pace and bench:plaincache: see README.md.
import net from 'node:net';
import { parseArgs } from 'node:util';
import { type Comparison, compare, compareAtRates, comparisonTable } from '../suite/compare';
import { opening } from '../suite/load/frames.cjs';
import { durationsOf } from '../suite/options';
import { type StartContender, goService, server, weir } from '../suite/processes/contenders';
import { startStore } from '../suite/processes/stores';
import { LOADS, type LoadName, type RuleKind } from '../suite/scenarios/loads';
import type { StoreName } from '../suite/scenarios/scenarios';

interface Suite {
  readonly store: StoreName;
  readonly loads: readonly LoadName[];
  /** Servers to compare weir with. */
  readonly servers: readonly string[];
  /** Other rules, with which weir is compared. */
  readonly kinds?: readonly RuleKind[];
  /** Calls per second; without it, at saturation and a quarter of it. */
  readonly rates?: readonly number[];
  /** Whether to measure the memory of idle connections, too. */
  readonly isIdle?: boolean;
}

const COUNTED: readonly LoadName[] = ['hot-key', '10k-keys', '3-descriptors'];
const SUITES: Readonly<Record<string, Suite>> = {
  'grpc-server': {
    store: 'memory',
    loads: ['10k-keys', 'deadlines'],
    servers: ['grpc-js', 'node-http2', 'http2'],
    isIdle: true,
  },
  go: { store: 'redis', loads: [...COUNTED, 'json'], servers: [] },
  kvstore: { store: 'redis', loads: COUNTED, servers: ['ioredis'] },
  limits: {
    store: 'redis',
    loads: ['hot-key', '10k-keys'],
    servers: [],
    kinds: ['sliding_window', 'token_bucket', 'rate_limits', 'all_or_nothing'],
  },
  pace: { store: 'memory', loads: ['10k-keys', 'json'], servers: ['floor'], rates: [1_000, 4_000] },
  plaincache: { store: 'memcached', loads: COUNTED, servers: ['memjs'] },
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
async function idleMemory(start: StartContender, count: number): Promise<number> {
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
  return memory;
}

async function main(): Promise<void> {
  const suite = SUITES[positionals[0] ?? ''];
  if (suite === undefined) throw new Error(`name one of ${Object.keys(SUITES).join(', ')}`);
  const starts: Readonly<Record<string, StartContender>> = {
    // With another build, only that one: the others are measured to know where weir stands.
    ...(values.against === undefined && Object.fromEntries(suite.servers.map((name) => [name, server(name)]))),
    ...(values.go !== undefined && { go: goService(values.go) }),
    ...(values.against !== undefined && { before: weir('before', {}, { dist: values.against }) }),
    ...(values.against === undefined &&
      suite.kinds !== undefined &&
      Object.fromEntries(suite.kinds.map((kind) => [kind, weir(kind, {}, { kind })]))),
    weir: weir('weir', {}),
  };
  const rates = values.rates === undefined ? suite.rates : values.rates.split(',').map(Number);
  const comparisons: Comparison[] = [];
  for (const load of suite.loads) {
    const scenario = { name: `${suite.store}/${load}`, store: suite.store, load };
    const durations = durationsOf(Number(values.seconds));
    const comparison =
      rates === undefined
        ? await compare(scenario, Object.values(starts), { durations, shares: [0.25], rounds: Number(values.rounds) })
        : await compareAtRates(scenario, Object.values(starts), { durations, rates });
    comparisons.push(comparison);
  }
  process.stdout.write(`${comparisonTable(comparisons)}\n`);
  if (suite.isIdle !== true) return;
  for (const [name, start] of Object.entries(starts)) {
    const memory = await idleMemory(start, Number(values.idle));
    process.stdout.write(`${name}: ${(memory / 1_024).toFixed(1)} KiB per idle connection\n`);
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);

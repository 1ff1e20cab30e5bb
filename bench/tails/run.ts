// npm run bench:tails: see README.md.
import { parseArgs } from 'node:util';
import { AllOf, WARM_UP_CALLS } from '../suite/compare';
import type { Latency } from '../suite/load/interval';
import { FILL_TIMEOUT, pace, saturate, sleep, startLoad } from '../suite/measure/decisions';
import type { Measured } from '../suite/measure/phase';
import { durationsOf } from '../suite/options';
import { type Contender, type StartContender, server, weir } from '../suite/processes/contenders';
import { startStore } from '../suite/processes/stores';
import { integer, markdownTable, significant } from '../suite/report/tables';
import { LOADS } from '../suite/scenarios/loads';
import { STORES, type StoreName } from '../suite/scenarios/scenarios';

/** Milliseconds between two looks at the calls in flight. */
const LOOK = 50;
/** Milliseconds after which a backlog is no longer waited for. */
const LONGEST = 10_000;
/** How much more than it can answer a service is sent in the end. */
const OVERLOAD = 1.5;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    stop: { type: 'string', default: '250' },
    rounds: { type: 'string', default: '3' },
    stores: { type: 'string', default: 'memory,redis' },
    against: { type: 'string' },
  },
});
const SERVICES: readonly StartContender[] = [
  server('floor'),
  ...(values.against === undefined ? [] : [weir('before', {}, { dist: values.against })]),
  weir('weir', {}),
];

interface Running {
  readonly contender: Contender;
  readonly measured: Measured;
}

/** How long callers wait while nothing happens, and how long a stop of the service is felt. */
interface Tail {
  readonly calm: Latency;
  /** Milliseconds from the end of the stop on until no more calls are in flight than before; undefined: they stayed. */
  readonly goneAfter: number | undefined;
}

async function tailAt({ contender, measured: { generator } }: Running, perSecond: number): Promise<Tail> {
  await generator.paced(perSecond);
  await sleep(1_000);
  await generator.mark();
  let most = 0;
  const until = performance.now() + Number(values.seconds) * 1_000;
  const intervals = [];
  while (performance.now() < until) {
    await sleep(1_000);
    const interval = await generator.mark();
    intervals.push(interval.latency);
    most = Math.max(most, interval.outstanding);
  }
  const calm = intervals.toSorted((one, other) => one.p999 - other.p999)[Math.floor(intervals.length / 2)]!;
  const pids = contender.pids!;
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  await sleep(Number(values.stop));
  for (const pid of pids) process.kill(pid, 'SIGCONT');
  const begun = performance.now();
  await generator.mark();
  let goneAfter: number | undefined;
  while (goneAfter === undefined && performance.now() - begun < LONGEST) {
    await sleep(LOOK);
    if ((await generator.mark()).outstanding <= most) goneAfter = performance.now() - begun;
  }
  await generator.stop();
  return { calm, goneAfter };
}

async function tailsOn(name: StoreName): Promise<Readonly<Record<'tails' | 'overload', readonly string[][]>>> {
  const load = LOADS['10k-keys'];
  await using store = await startStore(name);
  await using opened = new AllOf<AsyncDisposable>();
  const running: Running[] = [];
  for (const start of SERVICES) {
    const contender = await start(load, store);
    opened.items.push(contender);
    const generator = await startLoad(load, [contender]);
    opened.items.push(generator);
    await generator.fill(WARM_UP_CALLS, FILL_TIMEOUT);
    const measured = { generator, expected: load.expected, servicePids: contender.pids, store };
    running.push({ contender, measured });
  }
  const { perSecond } = await saturate(running.at(-1)!.measured, durationsOf(3));
  const tails: string[][] = [];
  for (const share of [0.5, 0.75]) {
    for (let round = 0; round < Number(values.rounds); round += 1) {
      for (const each of running) {
        const { calm, goneAfter } = await tailAt(each, perSecond * share);
        tails.push([
          STORES[name],
          `${share * 100} %: ${integer(perSecond * share)}/s`,
          each.contender.title,
          ...[calm.p50, calm.p99, calm.p999].map(significant),
          goneAfter === undefined ? 'not' : integer(goneAfter),
        ]);
      }
    }
  }
  const overload: string[][] = [];
  for (const each of running) {
    const phase = await pace(each.measured, perSecond * OVERLOAD, durationsOf(3));
    overload.push([
      STORES[name],
      integer(perSecond),
      each.contender.title,
      integer(phase.perSecond),
      significant(phase.cpu.service),
    ]);
  }
  return { tails, overload };
}

async function main(): Promise<void> {
  const all = [];
  for (const store of values.stores.split(',')) all.push(await tailsOn(store as StoreName));
  const head = ['Store', 'Pace', 'Service', 'p50 ms', 'p99 ms', 'p99.9 ms', 'backlog gone after, ms'];
  const overloadHead = ['Store', 'weir at saturation', 'Service', `answers/s at ${OVERLOAD} times that`, 'CPU µs'];
  const tails = markdownTable(
    head,
    all.flatMap((each) => each.tails),
  );
  const overload = markdownTable(
    overloadHead,
    all.flatMap((each) => each.overload),
  );
  process.stdout.write(`${tails}\n${overload}\n`);
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);

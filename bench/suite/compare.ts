import { type Durations, FILL_TIMEOUT, pace, saturate, startLoad } from './measure/decisions';
import type { Measured, Phase } from './measure/phase';
import type { Contender, StartContender } from './processes/contenders';
import { startStore } from './processes/stores';
import { integer, markdownTable, significant } from './report/tables';
import { LOADS } from './scenarios/loads';
import { STORES, type Scenario } from './scenarios/scenarios';

/** The same load on several services, one after the other and at the same paces. */
export interface Comparison extends Scenario {
  readonly services: readonly Compared[];
}

export interface Compared {
  readonly title: string;
  /** Each at saturation or at a rate that is the same for all. */
  readonly phases: readonly (readonly [pacing: string, phase: Phase])[];
}

export interface CompareOptions {
  readonly durations: Durations;
  readonly shares: readonly number[];
  /** How often all services are measured in turn at each pace; default: once. */
  readonly rounds?: number;
}

/**
 * Plays one load on all services in turn, each of which counts in the same store, unless it has its own: at saturation,
 * then at shares of the lowest of the saturations. With several rounds, figures are their medians: see
 * {@link medianOf}.
 */
export async function compare(
  scenario: Scenario,
  starts: readonly StartContender[],
  { durations, shares, rounds = 1 }: CompareOptions,
): Promise<Comparison> {
  const load = LOADS[scenario.load];
  await using store = await startStore(scenario.store);
  await using contenders = new AllOf<Contender>();
  for (const start of starts) contenders.items.push(await start(load, store));
  await using generators = new AllOf<Measured['generator']>();
  const measured: Measured[] = [];
  for (const contender of contenders.items) {
    const generator = await startLoad(load, [contender]);
    generators.items.push(generator);
    await generator.fill(durations.warmUpCalls, FILL_TIMEOUT);
    measured.push({ generator, expected: load.expected, servicePids: contender.pids, store: contender.store });
  }
  async function inTurn(measure: (each: Measured) => Promise<Phase>): Promise<readonly Phase[]> {
    const phases: Phase[][] = measured.map(() => []);
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, each] of measured.entries()) phases[index]!.push(await measure(each));
    }
    return phases.map(medianOf);
  }
  const saturations = await inTurn((each) => saturate(each, durations));
  const paces: (readonly [string, readonly Phase[]])[] = [['saturation', saturations]];
  const slowest = Math.min(...saturations.map(({ perSecond }) => perSecond));
  for (const share of shares) {
    paces.push([`${share * 100} %`, await inTurn((each) => pace(each, slowest * share, durations))]);
  }
  const services = contenders.items.map(({ title }, index) => ({
    title,
    phases: paces.map(([pacing, phases]) => [pacing, phases[index]!] as const),
  }));
  return { ...scenario, services };
}

/** The medians of CPU times, commands and latencies; everything else is that of the last round. */
function medianOf(rounds: readonly Phase[]): Phase {
  function of(read: (phase: Phase) => number | undefined): number | undefined {
    const known = rounds.flatMap((phase) => read(phase) ?? []);
    return known.length > 0 ? median(known) : undefined;
  }
  const last = rounds.at(-1)!;
  return {
    ...last,
    cpu: { service: of(({ cpu }) => cpu.service), store: of(({ cpu }) => cpu.store)! },
    commands: last.commands && {
      sent: of(({ commands }) => commands?.sent)!,
      executed: of(({ commands }) => commands?.executed)!,
    },
    latency: {
      p50: of(({ latency }) => latency.p50)!,
      p99: of(({ latency }) => latency.p99)!,
      p999: of(({ latency }) => latency.p999)!,
      max: of(({ latency }) => latency.max)!,
    },
  };
}

/** The upper one of the two in the middle of an even number. */
export function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;
}

/** Calls after which a new process has compiled its code. */
export const WARM_UP_CALLS = 24_000;

export interface RateOptions {
  readonly durations: Durations;
  /** Calls per second. */
  readonly rates: readonly number[];
  readonly rounds?: number;
  /** Whether each rate is measured a second time while the store stalls. */
  readonly stalls?: boolean | undefined;
}

/**
 * Plays one load on services at fixed rates, one process at a time: even one that waits empties the caches of the
 * processor for the others.
 */
export async function compareAtRates(
  scenario: Scenario,
  starts: readonly StartContender[],
  { durations, rates, rounds = 1, stalls = false }: RateOptions,
): Promise<Comparison> {
  const load = LOADS[scenario.load];
  const paces = rates.flatMap((rate) => (stalls ? [{ rate }, { rate, stalls }] : [{ rate }]));
  const measured = starts.map((start) => ({ start, title: '', phases: paces.map((): Phase[] => []) }));
  for (let round = 0; round < rounds; round += 1) {
    for (const each of measured) {
      await using store = await startStore(scenario.store);
      await using contender = await each.start(load, store);
      await using generator = await startLoad(load, [contender]);
      await generator.fill(WARM_UP_CALLS, FILL_TIMEOUT);
      each.title = contender.title;
      const running = { generator, expected: load.expected, servicePids: contender.pids, store: contender.store };
      for (const [index, { rate, stalls: isStalling = false }] of paces.entries()) {
        using _ = isStalling ? new Stalls(store.pids) : undefined;
        each.phases[index]!.push(await pace(running, rate, durations));
      }
    }
  }
  const services = measured.map(({ title, phases }) => ({
    title,
    phases: paces.map(({ rate, stalls: isStalling = false }, index) => {
      return [`${integer(rate)}/s${isStalling ? ', stalls' : ''}`, medianOf(phases[index]!)] as const;
    }),
  }));
  return { ...scenario, services };
}

/** How often processes are stopped, and for how long, in milliseconds. */
const [STALL_EVERY, STALL] = [1_000, 50];

/** Stops processes again and again. */
class Stalls implements Disposable {
  readonly #pids: readonly number[];
  readonly #timer: NodeJS.Timeout;
  #end: NodeJS.Timeout | undefined;

  constructor(pids: readonly number[]) {
    this.#pids = pids;
    this.#timer = setInterval(() => {
      this.#signal('SIGSTOP');
      this.#end = setTimeout(() => this.#signal('SIGCONT'), STALL);
    }, STALL_EVERY);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    clearTimeout(this.#end);
    this.#signal('SIGCONT');
  }

  #signal(name: NodeJS.Signals): void {
    for (const pid of this.#pids) process.kill(pid, name);
  }
}

const HEAD =
  'Load|Pace|Service|per second|CPU µs|store µs|sent to the store|executed there|× CPU|× store|× both|p50 ms|p99 ms|p99.9 ms|failed'.split(
    '|',
  );

/** A row for each load, pace and service, with its costs as multiples of those of the last one. */
export function comparisonTable(comparisons: readonly Comparison[]): string {
  const rows = comparisons.flatMap(({ load, store, services }) => {
    const last = services.at(-1)!.phases;
    return last.flatMap(([pacing, lastPhase], at) =>
      services.map((service) => [
        `${LOADS[load].title}; ${STORES[store]}`,
        pacing,
        service.title,
        ...cells(service.phases[at]![1], lastPhase),
      ]),
    );
  });
  return markdownTable(HEAD, rows);
}

function cells({ perSecond, cpu, commands, latency, calls }: Phase, last: Phase): readonly string[] {
  const both = cpu.service === undefined ? undefined : cpu.service + cpu.store;
  const lastBoth = last.cpu.service === undefined ? undefined : last.cpu.service + last.cpu.store;
  const ratios = [ratio(cpu.service, last.cpu.service), ratio(cpu.store, last.cpu.store), ratio(both, lastBoth)];
  const numbers = [cpu.service, cpu.store, commands?.sent, commands?.executed, ...ratios];
  const failed = integer(calls.failed);
  return [
    integer(perSecond),
    ...[...numbers, latency.p50, latency.p99, latency.p999].map(significant),
    calls.unexpected > 0 ? `${failed}, ${integer(calls.unexpected)} differ` : failed,
  ];
}

function ratio(cost: number | undefined, last: number | undefined): number | undefined {
  return cost === undefined || last === undefined || last === 0 ? undefined : cost / last;
}

/** Disposes of its items, the last one first. */
export class AllOf<T extends AsyncDisposable> implements AsyncDisposable {
  readonly items: T[] = [];

  async [Symbol.asyncDispose](): Promise<void> {
    for (const item of this.items.toReversed()) await item[Symbol.asyncDispose]();
  }
}

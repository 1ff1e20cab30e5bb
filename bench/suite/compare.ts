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
 * Plays one load on all services in turn, each of which counts in the same store, unless it has its own: at saturation, then at shares of
 * the lowest of the saturations. With several rounds, CPU times are their medians, and everything else is of the last one.
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
    return phases.map(withMedianCpu);
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

function withMedianCpu(rounds: readonly Phase[]): Phase {
  const services = rounds.flatMap(({ cpu }) => cpu.service ?? []);
  const store = median(rounds.map(({ cpu }) => cpu.store));
  return { ...rounds.at(-1)!, cpu: { service: services.length > 0 ? median(services) : undefined, store } };
}

/** The upper one of the two in the middle of an even number. */
export function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;
}

/** Calls after which a new process has compiled its code. */
export const WARM_UP_CALLS = 24_000;

/**
 * Plays one load on services at fixed rates, calls per second, one process at a time: even one that waits empties the caches of the
 * processor for the others.
 */
export async function compareAtRates(
  scenario: Scenario,
  starts: readonly StartContender[],
  { durations, rates }: { readonly durations: Durations; readonly rates: readonly number[] },
): Promise<Comparison> {
  const load = LOADS[scenario.load];
  const services: Compared[] = [];
  for (const start of starts) {
    await using store = await startStore(scenario.store);
    await using contender = await start(load, store);
    await using generator = await startLoad(load, [contender]);
    await generator.fill(WARM_UP_CALLS, FILL_TIMEOUT);
    const measured = { generator, expected: load.expected, servicePids: contender.pids, store: contender.store };
    const phases: (readonly [string, Phase])[] = [];
    for (const rate of rates) phases.push([`${integer(rate)}/s`, await pace(measured, rate, durations)]);
    services.push({ title: contender.title, phases });
  }
  return { ...scenario, services };
}

const HEAD =
  'Load|Pace|Service|per second|CPU µs|store µs|sent to the store|× CPU|× store|× both|p50 ms|p99 ms|p99.9 ms|failed'.split(
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
  const numbers = [cpu.service, cpu.store, commands?.sent, ...ratios];
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

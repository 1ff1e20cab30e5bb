import { join } from 'node:path';
import { type Durations, FILL_TIMEOUT, pace, saturate, startLoad } from './measure/decisions';
import type { Measured, Phase } from './measure/phase';
import type { Options } from './options';
import { Service } from './processes/service';
import { startStore } from './processes/stores';
import { comparisonTable } from './report/comparison';
import { writeComparison } from './results';
import { LOADS, type LoadName } from './scenarios/loads';
import type { Scenario } from './scenarios/scenarios';
import type { StoreName } from './scenarios/stores';

/** The same load on weir and on another service. */
export interface Comparison {
  readonly load: LoadName;
  readonly store: StoreName;
  readonly weir: Measurement;
  readonly other: Measurement;
}

export interface Measurement {
  readonly saturation: Phase;
  /** At the same rates for both: shares of the lower of the two saturations. */
  readonly paced: readonly { readonly share: number; readonly phase: Phase }[];
}

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly pid: number | undefined;
}

/** Plays the loads of the plan on another service and on weir, in turn. */
export async function compareWith(address: Address, options: Options, say: (line: string) => void): Promise<void> {
  const { plan, durations, shares, settings, out } = options;
  const scenarios = plan.scenarios.filter(isComparable);
  if (scenarios.length === 0)
    throw new Error('--against: only scenarios over gRPC without TLS and local cache can be compared');
  const comparisons: Comparison[] = [];
  for (const [index, scenario] of scenarios.entries()) {
    say(`[${index + 1}/${scenarios.length}] ${scenario.name}`);
    comparisons.push(await compare(scenario, { address, durations, shares, settings }));
  }
  writeComparison(out ?? join(__dirname, '../../.bench'), comparisons);
  say(comparisonTable(comparisons, `${address.host}:${address.port}`));
  const differing = comparisons.filter(({ other }) => other.saturation.calls.unexpected > 0);
  if (differing.length === 0) return;
  const names = differing.map(({ load }) => LOADS[load].title).join(', ');
  say(`The other service answered differently (${names}): does it have the rules that --rules prints?`);
}

/** Those in which the store of weir is the only difference between the two services. */
function isComparable({ load, store }: Scenario): boolean {
  return LOADS[load].protocol === 'grpc' && load !== 'over-limit-cached' && store !== 'redis-1ms';
}

async function compare(
  { load: name, store: storeName }: Scenario,
  options: {
    readonly address: Address;
    readonly durations: Durations;
    readonly shares: readonly number[];
    readonly settings: Readonly<Record<string, string>>;
  },
): Promise<Comparison> {
  const { address, durations, shares, settings } = options;
  const load = LOADS[name];
  await using store = await startStore(storeName);
  await using service = await Service.start(load, { ...store.env, ...settings });
  await using ownGenerator = await startLoad(load, [service]);
  await using otherGenerator = await startLoad(load, [{ target: address }]);
  for (const generator of [ownGenerator, otherGenerator]) await generator.fill(durations.warmUpCalls, FILL_TIMEOUT);
  const { expected } = load;
  const own: Measured = { generator: ownGenerator, expected, servicePids: [service.pid], store };
  const otherPids = address.pid === undefined ? undefined : [address.pid];
  const other: Measured = { generator: otherGenerator, expected, servicePids: otherPids };
  const saturations = [await saturate(own, durations), await saturate(other, durations)] as const;
  const slower = Math.min(...saturations.map(({ perSecond }) => perSecond));
  const paced: [Measurement['paced'][number][], Measurement['paced'][number][]] = [[], []];
  for (const share of shares) {
    for (const [index, measured] of [own, other].entries()) {
      paced[index]!.push({ share, phase: await pace(measured, slower * share, durations) });
    }
  }
  return {
    load: name,
    store: storeName,
    weir: { saturation: saturations[0], paced: paced[0] },
    other: { saturation: saturations[1], paced: paced[1] },
  };
}

import { LoadGenerator } from '../processes/load-generator';
import { Service } from '../processes/service';
import { startStore } from '../processes/stores';
import { LOADS, type Load, type LoadName, type Settings, connectionsFor } from '../scenarios/loads';
import type { Scenario, StoreName } from '../scenarios/scenarios';
import { type Measured, type Phase, measurePhase } from './phase';

/** Milliseconds in which the calls before the measurements have to be answered. */
export const FILL_TIMEOUT = 300_000;

export interface Durations {
  /** Calls before the first measurement, in which the service compiles its code. */
  readonly warmUpCalls: number;
  /** Milliseconds before the measurement of the closed loop. */
  readonly warmUp: number;
  /** Milliseconds of each measurement. */
  readonly measure: number;
  /** Milliseconds before the measurement of an open loop. */
  readonly settle: number;
}

/** An open loop at a share of the rate of the closed loop. */
export interface Paced {
  readonly share: number;
  readonly phase: Phase;
}

export interface DecisionResult {
  readonly load: LoadName;
  readonly store: StoreName;
  readonly saturation: Phase;
  readonly paced: readonly Paced[];
}

export interface DecisionOptions {
  readonly durations: Durations;
  /** Of saturation, for the open loops. */
  readonly shares: readonly number[];
  /** Settings of the service in addition to those of the scenario. */
  readonly settings: Settings;
  readonly onPhase: (title: string, phase: Phase) => void;
}

/** Measures the service in one scenario: first at saturation, then at shares of it. */
export async function measureDecisions(
  { load: name, store: storeName }: Scenario,
  { durations, shares, settings, onPhase }: DecisionOptions,
): Promise<DecisionResult> {
  const load = LOADS[name];
  await using store = await startStore(storeName);
  await using service = await Service.start(load, { ...store.env, ...settings });
  await using generator = await startLoad(load, [service]);
  const measured: Measured = { generator, expected: load.expected, servicePids: [service.pid], store };
  await generator.fill(durations.warmUpCalls, FILL_TIMEOUT);
  const saturation = await saturate(measured, durations);
  onPhase('saturation', saturation);
  const paced: Paced[] = [];
  for (const share of shares) {
    const phase = await pace(measured, saturation.perSecond * share, durations);
    onPhase(`${share * 100} %`, phase);
    paced.push({ share, phase });
  }
  return { load: name, store: storeName, saturation, paced };
}

/** A generator whose load has counted every value once. */
export async function startLoad(load: Load, services: readonly Pick<Service, 'target'>[]): Promise<LoadGenerator> {
  const { headers = 'envoy' } = load;
  const targets = services.map(({ target }) => ({ ...target, headers }));
  const generator = await LoadGenerator.start({ load, targets, ...connectionsFor(load) });
  await generator.fill(load.values, FILL_TIMEOUT);
  return generator;
}

/** Measures a closed loop. */
export async function saturate(measured: Measured, { warmUp, measure }: Durations): Promise<Phase> {
  await measured.generator.closed();
  await sleep(warmUp);
  return measureAndStop(measured, measure);
}

/** Measures an open loop. */
export async function pace(measured: Measured, perSecond: number, { settle, measure }: Durations): Promise<Phase> {
  await measured.generator.paced(perSecond);
  await sleep(settle);
  return measureAndStop(measured, measure);
}

async function measureAndStop(measured: Measured, milliseconds: number): Promise<Phase> {
  const phase = await measurePhase(measured, milliseconds);
  await measured.generator.stop();
  return phase;
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

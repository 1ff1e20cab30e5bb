import { type MonoTypeOperatorFunction, defer, pipe, tap } from 'rxjs';
import { VERSION } from '../version';
import type { RecentConfigurations } from '../operators/configurations';
import { recordLoads } from '../sinks/logs/rule-log';
import type { DrainStep } from '../streams/drain';
import type { RuleEvent } from '../streams/ports/rule-source';
import type { App } from './app';
import { type DebugInputs, openDebugListener } from './debug-listener';
import type { Serving } from './life';
import type { OutputInputs } from './metrics-listener';
import { startStatisticsOutputs } from './outputs';

/** Counts, logs and keeps loads of rules. */
export function recordRules(app: App, configurations: RecentConfigurations): MonoTypeOperatorFunction<RuleEvent> {
  return pipe(
    recordLoads(app, (load, changes) => configurations.compared(load, changes)),
    tap((event) => configurations.record(event)),
  );
}

/** What others see of an instance, from the start of its process to its end: statistics and the debug listener. */
export interface ServiceFront {
  readonly addresses: Pick<Serving, 'debug' | 'metrics'>;
  readonly endOfStatistics: DrainStep;
  readonly endOfDebug: DrainStep;
}

/** @throws when an address or a file of an output or of the debug listener cannot be used, naming the setting */
export async function openFront(
  app: App,
  inputs: DebugInputs & OutputInputs & Pick<DebugInputs, 'workers'>,
): Promise<ServiceFront> {
  app.statistics.gauge('ratelimit.build_info', () => 1, { version: VERSION, node: process.versions.node });
  const outputs = await startStatisticsOutputs(app, inputs);
  const debug = await openDebugListener(app, inputs);
  return {
    addresses: { debug: debug.address, metrics: outputs.metricsAddress },
    endOfStatistics: { name: 'statistics outputs', run: () => outputs.finish() },
    endOfDebug: { name: 'debug listener', run: () => defer(() => debug.close()) },
  };
}

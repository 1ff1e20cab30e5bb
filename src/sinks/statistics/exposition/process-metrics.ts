import { Registry, collectDefaultMetrics } from 'prom-client';

/** Milliseconds between samples of the event loop delay; the default of 10 ms would use 1 % of a core. */
const EVENT_LOOP_PRECISION = 20;

export interface ProcessMetrics {
  readonly names: ReadonlySet<string>;
  /** In the Prometheus text format, 0.0.4. */
  write(): Promise<string>;
}

/** prom-client's default metrics of the process and of Node. Measuring starts with the call; call it once. */
export function processMetrics(labels: Readonly<Record<string, string>>): ProcessMetrics {
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION });
  const names = registry
    .getMetricsAsArray()
    .flatMap(({ name }) => [name, `${name}_bucket`, `${name}_sum`, `${name}_count`]);
  return { names: new Set(names), write: () => registry.metrics() };
}

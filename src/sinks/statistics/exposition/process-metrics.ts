import { Registry, collectDefaultMetrics } from 'prom-client';

/** Milliseconds between two looks at the event loop's delay: the default of 10 would cost a percent of a core. */
const EVENT_LOOP_PRECISION = 20;

export interface ProcessMetrics {
  readonly names: ReadonlySet<string>;
  /** In the text format of Prometheus, 0.0.4. */
  write(): Promise<string>;
}

/** Metrics of the process and of Node, as prom-client has them. To be called once: it begins to measure. */
export function processMetrics(labels: Readonly<Record<string, string>>): ProcessMetrics {
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION });
  const names = registry
    .getMetricsAsArray()
    .flatMap(({ name }) => [name, `${name}_bucket`, `${name}_sum`, `${name}_count`]);
  return { names: new Set(names), write: () => registry.metrics() };
}

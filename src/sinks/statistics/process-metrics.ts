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

/** The first line of each metric, with its name. */
const HEAD = /^# HELP (\S+) /;
/**
 * Where a metric begins, except the first. Not `^`, which also matches after carriage returns and line separators in
 * labels.
 */
const NEXT_HEAD = /(?<=\n)(?=# HELP )/;

/**
 * Joins pages in the Prometheus text format into one: the series of each metric follow one another, under the HELP and
 * TYPE of the first page that has it. Pages are those of `prom-client`: each metric begins with its HELP line.
 */
export function mergeMetrics(pages: readonly string[]): string {
  const metrics = new Map<string, string[]>();
  for (const page of pages) {
    for (const block of page.split(NEXT_HEAD)) {
      const name = HEAD.exec(block)?.[1];
      if (name === undefined) continue;
      const lines = block.split('\n').filter((line) => line !== '');
      const known = metrics.get(name);
      if (known === undefined) metrics.set(name, lines);
      else known.push(...lines.filter((line) => !line.startsWith('#')));
    }
  }
  return [...metrics.values()].map((lines) => `${lines.join('\n')}\n`).join('');
}

import type { Check, Readiness } from '../streams/readiness';
import { type Route, textPage } from './listener';

/** What probes are answered from; `/readyz` lists the checks. */
export type ProbedReadiness = Pick<Readiness, 'health' | 'checks'>;

/**
 * `/healthcheck`: 200 `OK`, or another status, usually 500, with the unhealthy components. `/readyz`: 200 `ok`, or 503
 * and one line for each check: `[+]store ok` (or `not checked`, or `degraded`), or `[-]store failed: reason`. With
 * `?verbose` the lines are there in both cases. `/livez`: 200 as long as the process can respond, whatever it waits
 * for.
 *
 * @param canDecide false in place of a process that could: then it is unhealthy, with status 503
 */
export function probes(readiness: ProbedReadiness, canDecide = true): readonly Route[] {
  return [
    textPage('/healthcheck', 'whether the service can be called, from its start on', (ctx) => {
      const { healthy, unhealthy } = readiness.health;
      const isHealthy = healthy && canDecide;
      ctx.status = isHealthy ? 200 : canDecide ? 500 : 503;
      return isHealthy ? 'OK' : `unhealthy: ${unhealthy.join(', ')}`;
    }),
    textPage('/readyz', 'the same for readiness probes; with ?verbose, one line for each check', (ctx) => {
      const { checks } = readiness;
      const isReady = checks.every(({ failure }) => failure === undefined);
      ctx.status = isReady ? 200 : 503;
      if (isReady && ctx.query['verbose'] === undefined) return 'ok';
      return `${checks.map(lineOf).join('\n')}\nreadyz check ${isReady ? 'passed' : 'failed'}\n`;
    }),
    textPage('/livez', 'whether the process responds, for liveness probes', () => 'ok'),
  ];
}

function lineOf({ name, failure, note = 'ok' }: Check): string {
  return failure === undefined ? `[+]${name} ${note}` : `[-]${name} failed: ${failure}`;
}

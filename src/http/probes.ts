import type { Check, Health } from '../streams/readiness';
import { type Route, textPage } from './listener';

/** What probes are answered. */
export interface ProbeInputs {
  readonly health: () => Health;
  /** What `/readyz` lists. */
  readonly checks: () => readonly Check[];
}

/**
 * `/healthcheck`: 200 `OK`, or another status, usually 500, with the unhealthy components.
 * `/readyz`: 200 `ok`, or 503 and one line for each check: `[+]store ok` (or `not checked`, or `degraded`), or `[-]store failed: reason`. With `?verbose` the lines are
 * there in both cases.
 * `/livez`: 200 as long as the process can respond, whatever it waits for.
 */
export function probes({ health, checks }: ProbeInputs, unhealthyStatus = 500): readonly Route[] {
  return [
    textPage('/healthcheck', 'whether the service can be called, from its start on', (ctx) => {
      const { healthy, unhealthy } = health();
      ctx.status = healthy ? 200 : unhealthyStatus;
      return healthy ? 'OK' : `unhealthy: ${unhealthy.join(', ')}`;
    }),
    textPage('/readyz', 'the same for readiness probes; with ?verbose, one line for each check', (ctx) => {
      const all = checks();
      const isReady = all.every(({ failure }) => failure === undefined);
      ctx.status = isReady ? 200 : 503;
      if (isReady && ctx.query['verbose'] === undefined) return 'ok';
      return `${all.map(lineOf).join('\n')}\nreadyz check ${isReady ? 'passed' : 'failed'}\n`;
    }),
    textPage('/livez', 'whether the process responds, for liveness probes', () => 'ok'),
  ];
}

function lineOf({ name, failure, note = 'ok' }: Check): string {
  return failure === undefined ? `[+]${name} ${note}` : `[-]${name} failed: ${failure}`;
}

import type { Check, Health } from '../streams/readiness';
import { GET, type Route } from './listener';

/** What probes are answered. */
export interface ProbeInputs {
  readonly health: () => Health;
  /** What `/readyz` lists. */
  readonly checks: () => readonly Check[];
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/**
 * `/healthcheck`: 200 `OK`, or another status, usually 500, with the unhealthy components.
 * `/readyz`: 200 `ok`, or 503 and one line for each check: `[+]store ok` or `[-]store failed: reason`. With `?verbose` the lines are
 * there in both cases.
 * `/livez`: 200 as long as the process can respond, whatever it waits for.
 */
export function probes({ health, checks }: ProbeInputs, unhealthyStatus = 500): readonly Route[] {
  return [
    probe('/healthcheck', 'whether the service can be called, from its start on', () =>
      healthAnswer(health(), unhealthyStatus),
    ),
    probe('/readyz', 'the same for readiness probes; with ?verbose, one line for each check', (isVerbose) =>
      readyAnswer(checks(), isVerbose),
    ),
    probe('/livez', 'whether the process responds, for liveness probes', () => ({ status: 200, text: 'ok' })),
  ];
}

function probe(path: string, description: string, answer: (isVerbose: boolean) => Answer): Route {
  return {
    path,
    description,
    allow: GET,
    handle: (ctx) => {
      const { status, text } = answer(ctx.query['verbose'] !== undefined);
      ctx.status = status;
      ctx.type = 'text/plain';
      ctx.body = text;
    },
  };
}

function healthAnswer({ healthy, unhealthy }: Health, unhealthyStatus: number): Answer {
  return healthy
    ? { status: 200, text: 'OK' }
    : { status: unhealthyStatus, text: `unhealthy: ${unhealthy.join(', ')}` };
}

function readyAnswer(checks: readonly Check[], isVerbose: boolean): Answer {
  const isReady = checks.every(({ failure }) => failure === undefined);
  if (isReady && !isVerbose) return { status: 200, text: 'ok' };
  const lines = checks.map(({ name, failure }) =>
    failure === undefined ? `[+]${name} ok` : `[-]${name} failed: ${failure}`,
  );
  const text = `${lines.join('\n')}\nreadyz check ${isReady ? 'passed' : 'failed'}\n`;
  return { status: isReady ? 200 : 503, text };
}

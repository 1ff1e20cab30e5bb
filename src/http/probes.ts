import type { Middleware } from 'koa';
import type { Check } from '../streams/readiness';

/** `GET /livez`: 200 as long as the process can respond, whatever it waits for. */
export const livez: Middleware = (ctx) => {
  ctx.type = 'text/plain';
  ctx.body = 'ok';
};

/**
 * `GET /readyz`: 200 `ok`, or 503 and one line for each check: `[+]store ok` or `[-]store failed: reason`. With `?verbose` the lines
 * are there in both cases.
 */
export function readyzRoute(checks: () => readonly Check[]): Middleware {
  return (ctx) => {
    const all = checks();
    const isReady = all.every(({ failure }) => failure === undefined);
    ctx.status = isReady ? 200 : 503;
    ctx.type = 'text/plain';
    const isBrief = isReady && ctx.query['verbose'] === undefined;
    ctx.body = isBrief ? 'ok' : `${all.map(lineOf).join('\n')}\nreadyz check ${isReady ? 'passed' : 'failed'}\n`;
  };
}

function lineOf({ name, failure }: Check): string {
  return failure === undefined ? `[+]${name} ok` : `[-]${name} failed: ${failure}`;
}

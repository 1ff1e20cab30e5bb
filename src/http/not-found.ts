import type { Middleware } from 'koa';
import { Refusal } from './refusal';

/** Refuses what no route took. */
export function notFound(paths: readonly string[]): Middleware {
  return () => {
    throw new Refusal(404, 'not_found', `there is nothing here; there is ${paths.join(', ')}`);
  };
}

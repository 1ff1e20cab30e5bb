import type { Middleware } from 'koa';

/** One page of the debug listener. */
export interface DebugEndpoint {
  readonly path: string;
  /** One line for the index. */
  readonly about: string;
  /** Answers GET. */
  readonly get: Middleware;
}

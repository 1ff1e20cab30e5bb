import type { Middleware } from 'koa';

/** A page of the debug server. */
export interface DebugEndpoint {
  readonly path: string;
  /** One line for the index. */
  readonly description: string;
  /** Handles GET. */
  readonly get: Middleware;
}

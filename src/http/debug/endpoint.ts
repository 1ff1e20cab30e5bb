import type { Middleware } from 'koa';

/** A line of an index. */
export interface IndexLine {
  readonly path: string;
  readonly description: string;
}

/** A page of the debug server. */
export interface DebugEndpoint extends IndexLine {
  /** The same page with other query parameters, for the index. */
  readonly variants?: readonly IndexLine[];
  /** Handles GET. */
  readonly get: Middleware;
}

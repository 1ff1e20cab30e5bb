import type { Socket } from 'node:net';

/** Every kind of rejection of the HTTP listeners, by the name it is counted under. A rejection is counted once. */
export const HTTP_REJECTIONS = [
  /** A connection that was closed because there are as many as {@link HttpLimits.maxConnections}. */
  'connections',
  /** Too many requests in flight on one connection. */
  'pipelining',
  /** Headers with too many bytes or fields. */
  'header_list',
  /** A request that is not valid HTTP, or whose host is missing or ambiguous. */
  'malformed',
  /** A request that did not end in time. */
  'request_timeout',
  /** A caller that does not read its responses: they wait for too long, or take too much memory. */
  'slow_reader',
  /** A body that was ended because unfinished bodies take too much memory. */
  'request_memory',
  /** A body in very small pieces. */
  'data_dribble',
] as const;
export type HttpRejection = (typeof HTTP_REJECTIONS)[number];

/**
 * Called once for each connection or request that is rejected. `reason` is what is wrong in particular, for logs; empty if the kind
 * says everything.
 */
export type OnHttpRejected = (kind: HttpRejection, caller: Socket, reason: string) => void;

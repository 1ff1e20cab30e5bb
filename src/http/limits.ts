import type { Socket } from 'node:net';

/** Timeouts in milliseconds. A connection that exceeds one is closed. */
export interface HttpTimeouts {
  /** From the first byte of a request to the end of its headers. */
  readonly headers: number;
  /** From the first byte of a request to the end of its body. */
  readonly request: number;
  /** From the beginning of a response until the caller has received all of it. */
  readonly response: number;
  /** Between two requests on a connection. Longer than the usual idle timeout of proxies, so that they close first. */
  readonly keepAlive: number;
  /** Without a byte in either direction, in any state of the connection. */
  readonly inactive: number;
  /** For the requests in flight when the listener is closed. */
  readonly grace: number;
}

/** What the callers of one listener may use of the process. */
export interface HttpLimits {
  /**
   * Open connections. At the limit, a connection that awaits no decision is closed for a new one, or else the new one.
   */
  readonly maxConnections: number;
  /** Connections with an event stream, in addition to these. Whoever opens streams keeps to it. */
  readonly maxStreams: number;
  /** Requests in flight on one connection. More of them end it. */
  readonly maxPipelined: number;
  /** Bytes of the request line and the headers. */
  readonly maxHeaderBytes: number;
  /** Headers of a request. */
  readonly maxHeaders: number;
  /**
   * Bytes of responses that callers have not read yet, of all connections. Over it, the connections with the most are
   * ended.
   */
  readonly maxUnreadBytes: number;
}

const KIB = 1_024;
const MIB = 1_024 * KIB;

/** For the listener that serves decisions. */
export const PUBLIC_LIMITS: HttpLimits = {
  maxConnections: 16_384,
  maxStreams: 0,
  maxPipelined: 64,
  maxHeaderBytes: 16 * KIB,
  maxHeaders: 100,
  maxUnreadBytes: 64 * MIB,
};

/** For the listeners that serve operators and their programs. */
export const OPERATOR_TIMEOUTS: HttpTimeouts = {
  headers: 10_000,
  request: 10_000,
  response: 60_000,
  keepAlive: 75_000,
  inactive: 60_000,
  grace: 500,
};

/** For the same listeners: a few connections, one request after the other. */
export const OPERATOR_LIMITS: HttpLimits = {
  ...PUBLIC_LIMITS,
  maxConnections: 64,
  maxStreams: 64,
  maxPipelined: 8,
};

/** Every kind of rejection of the HTTP listeners, by the name it is counted under. A rejection is counted once. */
export const HTTP_REJECTIONS = [
  /** A connection that was closed because there are as many as {@link HttpLimits.maxConnections}. */
  'connections',
  /** A connection that was closed because more arrive than can be passed on to the processes that serve them. */
  'hand_over',
  /** Too many requests in flight on one connection. */
  'pipelining',
  /** Headers with too many bytes or fields. */
  'header_list',
  /** A connection whose TLS handshake has failed, or has not ended in time. */
  'tls_handshake',
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
 * Called once for each connection or request that is rejected. `reason` is what is wrong in particular, for logs; empty
 * if the kind says everything.
 */
export type OnHttpRejected = (kind: HttpRejection, caller: Socket, reason: string) => void;

import type { Awaited, Health } from '../streams/readiness';

/**
 * The certificates of the gRPC listener: PEM texts in base64, so that their characters make no difference to the size of the frame. The
 * name that clients' certificates must carry is not part of it: the worker has the settings.
 */
export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string | undefined;
  /** The key of session tickets in base64, the same in all workers: a client that reconnects meets any of them. */
  readonly ticketKeys: string;
}

/** What the primary requires of a worker, on the topic `control`. */
export type Order =
  /** Answered with `alive`. */
  | { readonly kind: 'ping' }
  /** The certificates to serve new connections with. */
  | { readonly kind: 'tls'; readonly tls: TlsTexts }
  /** Ends the connections of callers gracefully and lets the calls in flight finish; answered with `drained`. */
  | { readonly kind: 'drain' }
  /** No HTTP connection follows: ends everything else and exits. */
  | { readonly kind: 'finish' };

/** What a worker reports to the primary, on the topic `control`. */
export type Report =
  /** It takes connections. `store` describes its counter store, without credentials. */
  | { readonly kind: 'serving'; readonly store: string }
  | { readonly kind: 'alive' }
  /** It cannot run, and exits. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** The calls that were in flight when `drain` arrived are answered. */
  | { readonly kind: 'drained' }
  /** Its last message: it exits. */
  | { readonly kind: 'exiting' };

/** A worker's components, on the topic `health`. The primary sends the health of the instance on the same topic. */
export interface WorkerState {
  readonly health: Health;
  /** What the worker waits for before it serves. */
  readonly awaited: readonly Awaited[];
}

/** A listener of the primary. */
export type ListenerName = 'grpc' | 'http';

/** Sent over the IPC channel together with a socket. */
export interface Passed {
  readonly id: number;
  readonly listener: ListenerName;
}

/** What a worker answers over the IPC channel: that it has the socket of this number, and later that the socket is closed. */
export type SocketNotice = { readonly taken: number } | { readonly closed: number };

import type { UnaryHandler } from '../method';
import type { MethodObserver } from '../method-observer';

const SECOND = 1_000;
const KIB = 1_024;

/** The size of a request message. Larger messages fail with RESOURCE_EXHAUSTED. */
export const MAX_MESSAGE_BYTES = 4 * KIB * KIB;
/** The time to receive the only message of a call without a deadline, from the start of the call. */
export const REQUEST_TIMEOUT_MS = 30 * SECOND;
/** Responses of one call that the peer has not read: above this, the next message of the call is not handled. */
export const STREAM_OUTPUT_BYTES = 64 * KIB;
/** Received messages of one call that are not handled yet: above this, the caller gets no WINDOW_UPDATE. */
export const STREAM_INPUT_BYTES = 64 * KIB;
/** The length of an encoded status message. */
export const MAX_STATUS_MESSAGE_BYTES = KIB;

/** What all calls of a server share. */
export interface CallContext {
  /** Milliseconds, monotonic. */
  now(): number;
  /** A handler threw: an internal error, to be logged. The caller receives no details. */
  handlerFailed(path: string, error: unknown): void;
}

/** A unary method. */
export interface UnaryMethod {
  readonly handle: UnaryHandler;
  readonly observer: MethodObserver | undefined;
}

/** A call, as its request headers describe it. */
export interface CallHead {
  readonly context: CallContext;
  readonly path: string;
  /** Milliseconds; Infinity when the caller set no deadline. */
  readonly timeoutMs: number;
  /** Whether messages may be compressed (`grpc-encoding`), which is rejected for those that have the compressed flag. */
  readonly hasEncoding: boolean;
  /** The metadata fields that the server keeps; undefined when the request has none of them. */
  readonly metadata: ReadonlyMap<string, string> | undefined;
}

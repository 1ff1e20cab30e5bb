import type { CancelCause, Caller } from '../streams/ports/decide';
import type { CallTrace } from '../streams/ports/tracer';

/** The gRPC status codes that weir sends. */
export const GrpcStatus = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;
export type GrpcStatus = (typeof GrpcStatus)[keyof typeof GrpcStatus];

/** Work for a call that can be cancelled. An object and not a function, so that no closure is allocated per call. */
export interface Cancellable {
  /** The response is no longer needed: the deadline has passed or the caller has disconnected. Called at most once. */
  cancel(cause: CancelCause): void;
}

/**
 * A unary call as a handler receives it, independent of the transport. Exactly one of `reply` and `fail` is called,
 * once, synchronously or later; after a cancellation neither has any effect.
 */
export interface UnaryCall {
  /** Sends the message and status OK. The bytes are copied before this returns: the handler may reuse their buffer. */
  reply(message: Uint8Array): void;
  fail(status: GrpcStatus, message: string): void;
  /** Registers the work to cancel when the call is cancelled before it is answered. */
  onCancel(work: Cancellable): void;
  /**
   * A field of the request's metadata by its lower-case name; undefined when it was not sent, or is not among the
   * fields that the server keeps. Several values of one name are joined by commas. Absent on transports without
   * metadata.
   */
  metadata?(name: string): string | undefined;
  /** The other end of the connection. Absent on transports without connections. */
  readonly peer?: Caller['peer'];
  /** When the request was complete: milliseconds of the transport's monotonic clock. */
  readonly receivedAt: number;
  /** The trace of the call, when it is traced. */
  readonly trace?: CallTrace | undefined;
  /**
   * Milliseconds until four fifths of the time have passed that the caller waits; absent on transports without
   * deadlines.
   */
  readonly timeToAnswer?: number;
}

/**
 * Handles the calls of a unary method. The message is the transport's buffer, valid only until the handler returns:
 * copy what is needed longer.
 */
export interface UnaryHandler {
  (message: Uint8Array, call: UnaryCall): void;
  /**
   * What it is called with has happened: it is called once the message is read, also for a caller that does not wait
   * any more.
   */
  readonly isReport?: boolean;
}

/** Unary methods by their full path, for example `/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit`. */
export type UnaryMethods = ReadonlyMap<string, UnaryHandler>;

/**
 * A call whose response is a stream of messages. It ends with one `end` or `fail`; after that, and after a
 * cancellation, no method has any effect.
 */
export interface StreamingCall {
  /** Sends one message. The bytes are copied before this returns. */
  send(message: Uint8Array): void;
  /** Ends the call with status OK. */
  end(): void;
  fail(status: GrpcStatus, message: string): void;
  /** Registers the work to cancel when the call is cancelled, which also ends the call. */
  onCancel(work: Cancellable): void;
}

/** Receives the messages of a client stream. */
export interface MessageListener {
  /** The bytes are valid only until this returns. */
  message(message: Uint8Array): void;
  /** The caller has ended its stream. */
  ended(): void;
}

/** A method whose response is a stream. */
export interface StreamingMethod {
  /** Whether its request is exactly one message (server streaming), and not a stream, too (bidirectional streaming). */
  readonly takesOneMessage: boolean;
  /** Begins a call; one that takes one message, when its request is complete. */
  readonly begin: (call: StreamingCall) => MessageListener;
}

/** Streaming methods by their full path. */
export type StreamingMethods = ReadonlyMap<string, StreamingMethod>;

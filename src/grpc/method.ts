import type { CancelCause } from '../streams/ports/decide';
import type { CallTrace } from '../streams/ports/tracer';

/** The status codes of gRPC that weir answers with. */
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
  UNAUTHENTICATED: 16,
} as const;
export type GrpcStatus = (typeof GrpcStatus)[keyof typeof GrpcStatus];

/** What a call asks for, and can be taken back. An object and not a function, so that none need be made for each call. */
export interface Cancellable {
  /** Nobody reads the answer any more: the caller's deadline has passed, or it has gone. Called at most once. */
  cancel(cause: CancelCause): void;
}

/**
 * A unary call as a service sees it, whatever transport carries it. Exactly one of `reply` and `fail` is called, once, now
 * or later; after a cancellation neither has any effect.
 */
export interface UnaryCall {
  /** Sends the message and status OK. The bytes are copied before this returns: the caller may use their buffer again. */
  reply(message: Uint8Array): void;
  fail(status: GrpcStatus, message: string): void;
  /** Says what to cancel, unless the call is answered before. */
  onCancel(work: Cancellable): void;
  /**
   * A field of the request's metadata, by its name in lower case; undefined where it was not sent, or the door was not told to
   * keep it. Several of one name are joined by commas. Absent on transports that keep none.
   */
  metadata?(name: string): string | undefined;
  /** The trace that the call is given, when it is traced. */
  readonly trace?: CallTrace | undefined;
}

/**
 * One unary method: message bytes in, answer through the call. The bytes are the transport's buffer and are valid only
 * until the handler returns; what is kept longer is copied.
 */
export type UnaryHandler = (message: Uint8Array, call: UnaryCall) => void;

/** Unary methods by their full path, for example `/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit`. */
export type UnaryMethods = ReadonlyMap<string, UnaryHandler>;

/**
 * A call whose answer is any number of messages. It ends with `end` or `fail`, once; after that, and after a cancellation,
 * nothing has any effect.
 */
export interface StreamingCall {
  /** Sends one message. The bytes are copied before this returns. */
  send(message: Uint8Array): void;
  /** Ends the call with status OK. */
  end(): void;
  fail(status: GrpcStatus, message: string): void;
  /** Says what to cancel; a call that is cancelled is over. */
  onCancel(work: Cancellable): void;
}

/** One message in, any number out. The bytes are valid only until the handler returns. */
export type ServerStreamingHandler = (message: Uint8Array, call: StreamingCall) => void;

/** Takes the messages of a caller that sends any number of them, while those of the answer go out. */
export interface MessageListener {
  /** The bytes are valid only until this returns. */
  message(message: Uint8Array): void;
  /** The caller sends no more. */
  ended(): void;
}

/** Begins a call of messages in both directions. */
export type BidirectionalHandler = (call: StreamingCall) => MessageListener;

export type StreamingMethod =
  | { readonly kind: 'server streaming'; readonly handle: ServerStreamingHandler }
  | { readonly kind: 'bidirectional'; readonly handle: BidirectionalHandler };

/** Streaming methods by their full path. */
export type StreamingMethods = ReadonlyMap<string, StreamingMethod>;

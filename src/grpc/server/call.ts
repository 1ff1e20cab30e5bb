import type { CancelCause } from '../../streams/ports/decide';
import type { Call, StopReason, Stream } from '../http2/stream';
import type { Streams } from '../http2/streams';
import { type Cancellable, GrpcStatus, type UnaryCall } from '../method';
import type { Inflater, Inflation } from './inflater';
import type { MessageReceiver } from './message-reader';
import { type CallFailure, Failure, STOPPED, failureBlock } from './responses';

/** The time to receive the only message of a call without a deadline, from the start of the call. */
const REQUEST_TIMEOUT_MS = 30_000;

/** What all calls of a server share. */
export interface CallContext {
  /** Milliseconds, monotonic. */
  now(): number;
  readonly inflater: Inflater;
  /** A handler threw: an internal error, to be logged. The caller receives no details. */
  handlerFailed(path: string, error: unknown): void;
  /** A call of a method that the server does not have. */
  readonly methodUnknown: (reason: string, peer: UnaryCall['peer']) => void;
}

export type Encoding = 'identity' | 'gzip' | 'unknown';

/** A call, as its request headers describe it. */
export interface CallHead {
  readonly context: CallContext;
  readonly path: string;
  /** Milliseconds; Infinity when the caller set no deadline. */
  readonly timeoutMs: number;
  /** How messages with the compressed flag are compressed (`grpc-encoding`). */
  readonly encoding: Encoding;
  /** The metadata fields that the server keeps; undefined when the request has none of them. */
  readonly metadata: ReadonlyMap<string, string> | undefined;
}

/** What calls of both kinds have in common: their deadline, how they fail, and how their work is cancelled. */
export abstract class ServerCall implements Call, MessageReceiver {
  protected readonly head: CallHead;
  protected readonly streams: Streams;
  protected readonly stream: Stream;
  protected readonly deadline: number;
  /** The call has its status, or was cancelled. */
  protected isOver = false;
  protected hasSentHeaders = false;
  protected work: Cancellable | undefined;
  /** The decompression of the message that is handled next. */
  protected inflation: Inflation | undefined;

  constructor(head: CallHead, streams: Streams, stream: Stream, requestTimeoutMs = REQUEST_TIMEOUT_MS) {
    this.head = head;
    this.streams = streams;
    this.stream = stream;
    const { now } = streams;
    this.deadline = now + head.timeoutMs;
    streams.expireAt(stream, Math.min(this.deadline, now + requestTimeoutMs));
  }

  abstract data(source: Buffer, start: number, end: number, isEnded: boolean): void;
  abstract run(): void;
  abstract waits(): void;
  abstract drained(): void;

  // ---------------------------------------------------------------- the request

  received(source: Buffer, start: number, end: number, isCompressed: boolean): boolean {
    this.streams.messageEnded(this.stream);
    const { encoding } = this.head;
    if (!isCompressed || encoding === 'gzip') this.keep(source, start, end, isCompressed);
    else this.failWith(encoding === 'identity' ? Failure.COMPRESSED_AS_IDENTITY : Failure.UNKNOWN_ENCODING);
    return !this.isOver;
  }

  /** Decompresses the message that is handled next. */
  protected inflate(compressed: Buffer, inflated: (message: Buffer) => void): void {
    this.inflation = this.head.context.inflater.inflate(this.streams, compressed, {
      grows: (bytes) => this.streams.hold(this.stream, bytes),
      failed: (failure) => this.failWith(failure),
      inflated: (message) => {
        this.inflation = undefined;
        inflated(message);
      },
    });
  }

  failed(failure: CallFailure): void {
    this.failWith(failure);
  }

  /**
   * Keeps a message beyond this turn: a copy, as a view would keep its whole chunk in memory, which is accounted for.
   */
  protected abstract keep(source: Buffer, start: number, end: number, isCompressed: boolean): void;

  /** The request has been received. */
  protected completed(): void {
    this.streams.expireAt(this.stream, this.deadline);
    this.streams.requestCompleted(this.stream);
  }

  // ---------------------------------------------------------------- the end

  fail(status: GrpcStatus, message: string): void {
    this.failWith({ status, message });
  }

  protected failWith(failure: CallFailure): void {
    if (this.close(failure.status)) this.streams.sendTrailers(this.stream, this.#blockOf(failure));
  }

  cancel(): void {
    this.#abandon('cancelled', GrpcStatus.CANCELLED);
  }

  expire(): void {
    if (this.isOver) return;
    if (this.head.context.now() < this.deadline) {
      this.streams.rejected('request_timeout');
      return this.failWith(Failure.SLOW_REQUEST);
    }
    this.streams.sendTrailers(this.stream, this.#blockOf(Failure.DEADLINE));
    this.#abandon('deadline_exceeded', GrpcStatus.DEADLINE_EXCEEDED);
  }

  stop(reason: StopReason): void {
    // An answer that waits for a flow-control window is not replaced.
    if (this.isOver) return;
    this.streams.stop(this.stream, this.#blockOf(STOPPED[reason]), reason);
    this.cancel();
  }

  /** The stream is closed, or will be: no response is needed. */
  #abandon(cause: CancelCause, status: GrpcStatus): void {
    this.abandoned();
    const { work } = this;
    if (this.mustAnswer || !this.close(status)) return;
    try {
      work?.cancel(cause);
    } catch (error) {
      this.threw(error);
    }
  }

  /** The caller does not wait any more. */
  protected abandoned(): void {}

  /** The call keeps its slot until the handler answers. */
  protected get mustAnswer(): boolean {
    return false;
  }

  /** A part of the handler threw. */
  protected threw(error: unknown): void {
    this.head.context.handlerFailed(this.head.path, error);
    this.failWith(Failure.INTERNAL_ERROR);
  }

  /** Returns false if the call was over before. */
  protected close(_status: GrpcStatus): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.work = undefined;
    this.inflation?.cancel();
    if (this.stream.isRunning) this.streams.release(this.stream);
    return true;
  }

  #blockOf(failure: CallFailure): Buffer {
    return failureBlock(failure, !this.hasSentHeaders, this.streams.maxHeaderListBytes);
  }
}

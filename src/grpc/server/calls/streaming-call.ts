import type { CancelCause } from '../../../streams/ports/decide';
import type { Stream } from '../../http2/streams/stream';
import type { Cancellable, GrpcStatus, StreamingCall } from '../../method';
import type { CallHead } from '../requests';
import { type CallFailure, RESPONSE_HEADERS, TRAILERS_OK, TRAILERS_ONLY_OK } from '../responses';
import { messagePrefix } from '../message-reader';
import type { Call, CallContext } from './call';
import { DEADLINE, INTERNAL_ERROR, MESSAGE_FAILURES, SHUTTING_DOWN } from '../responses';

/** The response side of a call whose response is a stream of messages. */
export abstract class StreamingServerCall implements Call, StreamingCall {
  /** The status has been sent, or the call was cancelled. */
  protected isOver = false;
  protected readonly deadline: number;
  #hasSentHeaders = false;
  #work: Cancellable | undefined;

  constructor(
    protected readonly context: CallContext,
    protected readonly stream: Stream<Call>,
    protected readonly head: CallHead,
  ) {
    // It may stay open for any time.
    stream.isPaced = false;
    this.deadline = stream.connection.now + head.timeoutMs;
    stream.expireAt(this.deadline);
  }

  abstract data(source: Buffer, start: number, end: number, isEnded: boolean): void;
  abstract run(): void;
  abstract waits(): void;
  abstract drained(): void;
  /** The call is over: releases what it has received. */
  protected abstract abandonInput(): void;

  displaced(): void {
    this.#abort(MESSAGE_FAILURES['too much memory'], 'cancelled');
  }

  send(message: Uint8Array): void {
    if (this.isOver) return;
    const { stream } = this;
    if (!this.#hasSentHeaders) stream.sendHeaders(RESPONSE_HEADERS);
    this.#hasSentHeaders = true;
    stream.sendData(messagePrefix(message.length), message);
  }

  end(): void {
    if (this.#close()) this.stream.sendTrailers(this.#hasSentHeaders ? TRAILERS_OK : TRAILERS_ONLY_OK);
  }

  fail(status: GrpcStatus, message: string): void {
    this.failWith({ status, message });
  }

  onCancel(work: Cancellable): void {
    if (!this.isOver) this.#work = work;
    // Sending may have ended the connection, and with it this call, before there was anything to cancel.
    else this.#cancelWork(work, 'cancelled');
  }

  cancel(cause: CancelCause): void {
    const work = this.#work;
    if (this.#close()) this.#cancelWork(work, cause);
  }

  expire(): void {
    this.#abort(DEADLINE, 'deadline_exceeded');
  }

  goingAway(): void {
    this.#abort(SHUTTING_DOWN, 'cancelled');
  }

  /** Runs a part of the handler. If it throws, the call ends with an internal error. */
  protected guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.context.handlerFailed(this.head.path, error);
      this.failWith(INTERNAL_ERROR);
    }
  }

  protected failWith(failure: CallFailure): void {
    if (!this.#close()) return;
    const { failures } = this.context;
    const maxListBytes = this.stream.connection.peerMaxHeaderListBytes;
    this.stream.sendTrailers(failures.of(failure, !this.#hasSentHeaders, maxListBytes));
  }

  #abort(failure: CallFailure, cause: CancelCause): void {
    const work = this.#work;
    if (this.isOver) return;
    this.failWith(failure);
    this.#cancelWork(work, cause);
  }

  #cancelWork(work: Cancellable | undefined, cause: CancelCause): void {
    if (work !== undefined) this.guard(() => work.cancel(cause));
  }

  /** Returns false if the call was over before. */
  #close(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.#work = undefined;
    this.abandonInput();
    if (this.stream.isRunning) this.stream.release();
    return true;
  }
}

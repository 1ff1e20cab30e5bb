import type { CancelCause } from '../../../streams/ports/decide';
import type { Stream } from '../../http2/streams/stream';
import { type Cancellable, GrpcStatus, type UnaryCall, type UnaryHandler } from '../../method';
import type { CallHead } from '../requests';
import { type CallFailure, RESPONSE_HEADERS, TRAILERS_OK } from '../responses';
import { REQUEST_TIMEOUT_MS } from '../message-reader';
import { messagePrefix } from '../message-reader';
import type { Call, CallContext } from './call';
import { DEADLINE, INTERNAL_ERROR, MESSAGE_FAILURES, SLOW_REQUEST } from '../responses';
import { SingleMessage } from './single-message';

/** A call of a unary method. */
export class UnaryServerCall implements Call, UnaryCall {
  readonly #context: CallContext;
  readonly #stream: Stream<Call>;
  readonly #head: CallHead;
  readonly #handle: UnaryHandler;
  readonly #request: SingleMessage;
  readonly #deadline: number;
  receivedAt = 0;
  #isAnswered = false;
  #isCancelled = false;
  #work: Cancellable | undefined;

  constructor(context: CallContext, stream: Stream<Call>, head: CallHead, handle: UnaryHandler, isEnded: boolean) {
    this.#context = context;
    this.#stream = stream;
    this.#head = head;
    this.#handle = handle;
    const { now } = stream.connection;
    this.#request = new SingleMessage(stream, head.hasEncoding);
    this.#deadline = now + head.timeoutMs;
    const limit = isEnded ? Infinity : now + REQUEST_TIMEOUT_MS;
    stream.expireAt(Math.min(this.#deadline, limit));
    if (isEnded) this.data(NOTHING, 0, 0, true);
  }

  data(source: Buffer, start: number, end: number, isEnded: boolean): void {
    if (!this.#request.read(source, start, end, isEnded)) return;
    this.receivedAt = this.#stream.connection.now;
    this.#stream.expireAt(this.#deadline);
    this.#stream.requestCompleted();
    const { failure } = this.#request;
    if (failure === undefined) return this.#stream.schedule();
    if (isEnded && this.#isRefused) this.#rejected();
    this.#sendFailure(failure);
  }

  run(): void {
    if (this.#hasExpired()) return;
    this.#invoke(this.#request.take());
  }

  waits(): void {
    if (this.#request.keep()) return;
    this.#rejected();
    this.#sendFailure(this.#request.failure!);
  }

  reply(message: Uint8Array): void {
    if (!this.#release() || this.#isCancelled) return;
    const stream = this.#stream;
    stream.sendHeaders(RESPONSE_HEADERS);
    stream.sendData(messagePrefix(message.length), message);
    stream.sendTrailers(TRAILERS_OK);
  }

  fail(status: GrpcStatus, message: string): void {
    this.#failWith({ status, message });
  }

  onCancel(work: Cancellable): void {
    if (!this.#isAnswered) this.#work = work;
  }

  get peer(): UnaryCall['peer'] {
    return this.#stream.connection.peer;
  }

  metadata(name: string): string | undefined {
    return this.#head.metadata?.get(name);
  }

  /** Frees the slot of a call whose handler can cancel its work. Without that, the slot is in use until the handler answers. */
  cancel(cause: CancelCause): void {
    this.#isCancelled = true;
    if (this.#isAnswered) return;
    this.#endUnhandled(cause === 'cancelled' ? GrpcStatus.CANCELLED : GrpcStatus.DEADLINE_EXCEEDED);
    this.#request.abandon();
    const work = this.#work;
    if (work === undefined) return;
    this.#release();
    this.#cancelWork(work, cause);
  }

  expire(): void {
    if (this.#isAnswered) return;
    if (!this.#stream.isRemoteEnded && this.#context.now() < this.#deadline) {
      this.#stream.rejected('request_timeout');
      this.#sendFailure(SLOW_REQUEST);
      return;
    }
    this.#isCancelled = true;
    this.#sendFailure(DEADLINE);
    this.cancel('deadline_exceeded');
  }

  displaced(): void {
    this.#sendFailure(MESSAGE_FAILURES['too much memory']);
  }

  drained(): void {}

  goingAway(): void {}

  #hasExpired(): boolean {
    if (this.#deadline === Infinity || this.#context.now() < this.#deadline) return false;
    this.#endUnhandled(GrpcStatus.DEADLINE_EXCEEDED);
    this.#failWith(DEADLINE);
    return true;
  }

  /** The call ends: a complete request that waits to be handled will not be. */
  #endUnhandled(status: GrpcStatus): void {
    if (this.#stream.isRequestComplete && this.#request.hasMessage) this.#handle.unhandled?.(this, status);
  }

  /** Whether there is no memory for the request. */
  get #isRefused(): boolean {
    return this.#request.failure === MESSAGE_FAILURES['too much memory'];
  }

  #rejected(): void {
    this.#handle.unhandled?.(this, GrpcStatus.RESOURCE_EXHAUSTED);
  }

  #failWith(failure: CallFailure): void {
    if (this.#release() && !this.#isCancelled) this.#sendFailure(failure);
  }

  #invoke(message: Buffer): void {
    try {
      this.#handle(message, this);
    } catch (error) {
      this.#context.handlerFailed(this.#head.path, error);
      this.#failWith(INTERNAL_ERROR);
    }
  }

  #cancelWork(work: Cancellable, cause: CancelCause): void {
    try {
      work.cancel(cause);
    } catch (error) {
      this.#context.handlerFailed(this.#head.path, error);
    }
  }

  #sendFailure(failure: CallFailure): void {
    const stream = this.#stream;
    stream.sendTrailers(this.#context.failures.of(failure, true, stream.connection.peerMaxHeaderListBytes));
  }

  /** Ends the handler's work. Returns false if it had ended before. */
  #release(): boolean {
    if (this.#isAnswered) return false;
    this.#isAnswered = true;
    this.#work = undefined;
    this.#stream.release();
    return true;
  }
}

const NOTHING = Buffer.alloc(0);

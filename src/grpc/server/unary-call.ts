import type { CancelCause } from '../../streams/ports/decide';
import { copyToKeep } from '../http2/protocol';
import type { Call, StopReason, Stream } from '../http2/stream';
import type { Streams } from '../http2/streams';
import type { CallTrace } from '../../streams/ports/tracer';
import { type Cancellable, GrpcStatus, type UnaryCall } from '../method';
import { type CallHead, MAX_MESSAGE_BYTES, REQUEST_TIMEOUT_MS, type UnaryMethod } from './call';
import { MessageReader, type MessageReceiver, PREFIX_BYTES, messagePrefix } from './message-reader';
import {
  type CallFailure,
  Failure,
  STOPPED,
  RESPONSE_HEADERS,
  TRAILERS_OK,
  compressionFailure,
  failureBlock,
} from './responses';

/** A call of a unary method: a request of exactly one message, and its response. */
export class UnaryServerCall implements Call, UnaryCall, MessageReceiver {
  readonly #head: CallHead;
  readonly #method: UnaryMethod;
  readonly #streams: Streams;
  readonly #stream: Stream;
  readonly #deadline: number;
  receivedAt = 0;
  /** The message is `#source[#start, #end)`, from when it has been received until it is handled or not needed any more. */
  #source: Buffer | undefined;
  #start = 0;
  #end = 0;
  /** The message is in the chunk in which it arrived, and not accounted for. */
  #isInChunk = false;
  /** Reads a request that is more than one DATA frame. */
  #reader: MessageReader | undefined;
  /** Why there is no message. */
  #failure: CallFailure | undefined;
  trace: CallTrace | undefined;
  /** Its observer knows that it has begun, and that it has not ended. */
  #isObserved = false;
  #isAnswered = false;
  #isCancelled = false;
  #work: Cancellable | undefined;

  constructor(head: CallHead, method: UnaryMethod, streams: Streams, stream: Stream) {
    this.#head = head;
    this.#method = method;
    this.#streams = streams;
    this.#stream = stream;
    const { now } = streams;
    this.#deadline = now + head.timeoutMs;
    streams.expireAt(stream, Math.min(this.#deadline, now + REQUEST_TIMEOUT_MS));
  }

  // ---------------------------------------------------------------- the request

  data(source: Buffer, start: number, end: number, isEnded: boolean): void {
    const streams = this.#streams;
    const stream = this.#stream;
    // The common case, without a copy: one DATA frame that is the message and ends the stream.
    if (isEnded && this.#reader === undefined && isSingleMessage(source, start, end)) {
      this.#source = source;
      this.#start = start + PREFIX_BYTES;
      this.#end = end;
      this.#isInChunk = true;
    } else if (!this.#read(source, start, end, isEnded)) return;
    this.receivedAt = streams.now;
    streams.expireAt(stream, this.#deadline);
    streams.requestCompleted(stream);
    if (this.#failure === undefined) return streams.schedule(stream);
    if (isEnded && this.#failure === Failure.TOO_MUCH_MEMORY) this.#refused();
    this.#sendFailure(this.#failure);
  }

  /** Reads more of the request. Returns true when it is complete or has failed. */
  #read(source: Buffer, start: number, end: number, isEnded: boolean): boolean {
    this.#reader ??= new MessageReader(this, this.#streams, this.#stream);
    this.#reader.read(source, start, end);
    if (this.#failure !== undefined) return true;
    if (!isEnded) {
      this.#streams.consumed(this.#stream, end - start);
      return false;
    }
    if (this.#reader.isInside) this.#failure = Failure.TRUNCATED_MESSAGE;
    else if (this.#source === undefined) this.#failure = Failure.NO_MESSAGE;
    return true;
  }

  received(source: Buffer, start: number, end: number, isCompressed: boolean): boolean {
    this.#streams.messageEnded(this.#stream);
    if (this.#source !== undefined) this.#failure = Failure.SECOND_MESSAGE;
    else if (isCompressed) this.#failure = compressionFailure(this.#head.hasEncoding);
    else this.#keep(source, start, end);
    return this.#failure === undefined;
  }

  failed(failure: CallFailure): void {
    this.#failure = failure;
  }

  /** Keeps the message beyond this turn: copies it, as a view would keep its whole chunk in memory, and accounts for it. */
  #keep(source: Buffer, start: number, end: number): void {
    this.#source = undefined;
    this.#isInChunk = false;
    if (!this.#streams.hold(this.#stream, end - start)) {
      this.#failure = Failure.TOO_MUCH_MEMORY;
      return;
    }
    // Making room may have ended the whole connection, and with it this call.
    if (this.#isCancelled) return;
    this.#source = copyToKeep(source, start, end);
    this.#start = 0;
    this.#end = end - start;
  }

  waits(): void {
    if (!this.#isInChunk) return;
    this.#keep(this.#source!, this.#start, this.#end);
    if (this.#failure === undefined) return;
    this.#refused();
    this.#sendFailure(this.#failure);
  }

  // ---------------------------------------------------------------- the work

  run(): void {
    if (this.#deadline !== Infinity && this.#head.context.now() >= this.#deadline) {
      this.#endUnhandled(GrpcStatus.DEADLINE_EXCEEDED);
      this.#failWith(Failure.DEADLINE);
      return;
    }
    // Neither kept here nor counted any more: handlers use the message only until they return.
    this.#streams.releaseHeld(this.#stream, this.#stream.held);
    const message = this.#source!.subarray(this.#start, this.#end);
    this.#source = undefined;
    this.#began();
    try {
      this.#method.handle(message, this);
    } catch (error) {
      this.#head.context.handlerFailed(this.#head.path, error);
      this.#failWith(Failure.INTERNAL_ERROR);
    }
  }

  reply(message: Uint8Array): void {
    if (!this.#release()) return;
    if (!this.#isCancelled) {
      const streams = this.#streams;
      const stream = this.#stream;
      streams.sendHeaders(stream, RESPONSE_HEADERS);
      streams.sendData(stream, messagePrefix(message.length), message);
      streams.sendTrailers(stream, TRAILERS_OK);
    }
    this.#ended(GrpcStatus.OK);
  }

  fail(status: GrpcStatus, message: string): void {
    this.#failWith({ status, message });
  }

  onCancel(work: Cancellable): void {
    if (!this.#isAnswered) this.#work = work;
  }

  get peer(): UnaryCall['peer'] {
    return this.#streams.peer;
  }

  metadata(name: string): string | undefined {
    return this.#head.metadata?.get(name);
  }

  // ---------------------------------------------------------------- the end

  cancel(): void {
    this.#cancel('cancelled');
  }

  expire(): void {
    if (this.#isAnswered) return;
    if (!this.#stream.isRemoteEnded && this.#head.context.now() < this.#deadline) {
      this.#streams.rejected('request_timeout');
      this.#sendFailure(Failure.SLOW_REQUEST);
      return;
    }
    this.#isCancelled = true;
    this.#sendFailure(Failure.DEADLINE);
    this.#cancel('deadline_exceeded');
  }

  stop(reason: StopReason): void {
    this.#isCancelled = true;
    // An answer that waits for a flow-control window is not replaced.
    if (!this.#isAnswered) this.#streams.stop(this.#stream, this.#blockOf(STOPPED[reason]), reason);
    this.#cancel('cancelled');
  }

  drained(): void {}

  /** Frees the slot of a call whose handler can cancel its work. Without that, the slot is in use until the handler answers. */
  #cancel(cause: CancelCause): void {
    this.#isCancelled = true;
    if (this.#isAnswered) return;
    const status = cause === 'cancelled' ? GrpcStatus.CANCELLED : GrpcStatus.DEADLINE_EXCEEDED;
    this.#endUnhandled(status);
    this.#source = undefined;
    const work = this.#work;
    if (work === undefined) return;
    this.#release();
    this.#ended(status);
    try {
      work.cancel(cause);
    } catch (error) {
      this.#head.context.handlerFailed(this.#head.path, error);
    }
  }

  /** The call ends: a complete request that waits to be handled will not be. */
  #endUnhandled(status: GrpcStatus): void {
    if (!this.#stream.isRequestComplete || this.#source === undefined) return;
    this.#began();
    this.#ended(status);
  }

  /** There is no memory for the request, which is complete. */
  #refused(): void {
    this.#began();
    this.#ended(GrpcStatus.RESOURCE_EXHAUSTED);
  }

  #began(): void {
    this.#isObserved = true;
    this.trace = this.#method.observer?.began(this);
  }

  /** Only the first call has an effect: a handler may reply to a call that was cancelled meanwhile. */
  #ended(status: GrpcStatus): void {
    if (!this.#isObserved) return;
    this.#isObserved = false;
    this.#method.observer?.ended(this, status);
  }

  #failWith(failure: CallFailure): void {
    if (!this.#release()) return;
    if (!this.#isCancelled) this.#sendFailure(failure);
    this.#ended(failure.status);
  }

  #sendFailure(failure: CallFailure): void {
    this.#streams.sendTrailers(this.#stream, this.#blockOf(failure));
  }

  #blockOf(failure: CallFailure): Buffer {
    return failureBlock(failure, true, this.#streams.maxHeaderListBytes);
  }

  /** Ends the handler's work. Returns false if it had ended before. */
  #release(): boolean {
    if (this.#isAnswered) return false;
    this.#isAnswered = true;
    this.#work = undefined;
    this.#streams.release(this.#stream);
    return true;
  }
}

/** Whether the bytes are one complete, uncompressed message and nothing else. */
function isSingleMessage(source: Buffer, start: number, end: number): boolean {
  const length = end - start - PREFIX_BYTES;
  if (length < 0 || length > MAX_MESSAGE_BYTES || source[start] !== 0) return false;
  return length === source.readUInt32BE(start + 1);
}

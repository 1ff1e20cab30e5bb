import type { CancelCause } from '../../streams/ports/decide';
import { copyToKeep } from '../http2/protocol';
import type { Call, StopReason, Stream } from '../http2/stream';
import type { Streams } from '../http2/streams';
import type { Cancellable, GrpcStatus, MessageListener, StreamingCall, StreamingMethod } from '../method';
import { type CallHead, REQUEST_TIMEOUT_MS, STREAM_INPUT_BYTES, STREAM_OUTPUT_BYTES } from './call';
import { MessageReader, type MessageReceiver, messagePrefix } from './message-reader';
import {
  type CallFailure,
  Failure,
  STOPPED,
  RESPONSE_HEADERS,
  TRAILERS_OK,
  TRAILERS_ONLY_OK,
  compressionFailure,
  failureBlock,
} from './responses';

/** What a queued message takes in addition to its bytes, at most: its objects, and its place in the queue. */
const QUEUED_MESSAGE_BYTES = 256;

/**
 * A call whose response is a stream of messages. Its request is one message, which is handled when the request is complete, or a
 * stream, too. The next message is handled when most of the responses so far have been sent: a caller that does not read them gets no
 * WINDOW_UPDATE and must stop sending.
 */
export class StreamServerCall implements Call, StreamingCall, MessageReceiver {
  readonly #head: CallHead;
  readonly #method: StreamingMethod;
  readonly #streams: Streams;
  readonly #stream: Stream;
  readonly #deadline: number;
  readonly #reader: MessageReader;
  #listener: MessageListener | undefined;
  /** The messages that have been received and not handled yet, and what they count towards the memory limit. */
  readonly #inbox: Buffer[] = [];
  #inboxBytes = 0;
  /** Bytes received that have not been returned to the caller's flow-control window yet. */
  #uncredited = 0;
  /** The caller has ended its stream, and the listener does not know yet. */
  #isEnded = false;
  #isScheduled = false;
  #hasSentHeaders = false;
  /** The status has been sent, or the call was cancelled. */
  #isOver = false;
  #work: Cancellable | undefined;

  /** @param stream stays open */
  constructor(head: CallHead, method: StreamingMethod, streams: Streams, stream: Stream) {
    this.#head = head;
    this.#method = method;
    this.#streams = streams;
    this.#stream = stream;
    this.#reader = new MessageReader(this, streams, stream);
    this.#deadline = streams.now + head.timeoutMs;
    const limit = method.takesOneMessage ? streams.now + REQUEST_TIMEOUT_MS : Infinity;
    streams.expireAt(stream, Math.min(this.#deadline, limit));
    if (!method.takesOneMessage) this.#schedule();
  }

  // ---------------------------------------------------------------- the request

  data(source: Buffer, start: number, end: number, isEnded: boolean): void {
    if (this.#isOver) return;
    this.#uncredited += end - start;
    this.#reader.read(source, start, end);
    if (this.#isOver) return;
    this.#isEnded = isEnded;
    if (isEnded && this.#reader.isInside) return this.#failWith(Failure.TRUNCATED_MESSAGE);
    this.#credit();
    if (!this.#method.takesOneMessage) this.#schedule();
    else if (isEnded) this.#completed();
  }

  /** The request, which had to be one message, is complete. */
  #completed(): void {
    if (this.#inbox.length === 0) return this.#failWith(Failure.NO_MESSAGE);
    this.#streams.expireAt(this.#stream, this.#deadline);
    this.#streams.requestCompleted(this.#stream);
    this.#schedule();
  }

  received(source: Buffer, start: number, end: number, isCompressed: boolean): boolean {
    this.#streams.messageEnded(this.#stream);
    const held = end - start + QUEUED_MESSAGE_BYTES;
    if (this.#method.takesOneMessage && this.#inbox.length > 0) this.#failWith(Failure.SECOND_MESSAGE);
    else if (isCompressed) this.#failWith(compressionFailure(this.#head.hasEncoding));
    else if (!this.#streams.hold(this.#stream, held)) this.#failWith(Failure.TOO_MUCH_MEMORY);
    // Making room may have ended the connection, and with it this call.
    if (this.#isOver) return false;
    this.#inbox.push(copyToKeep(source, start, end));
    this.#inboxBytes += held;
    return true;
  }

  failed(failure: CallFailure): void {
    this.#failWith(failure);
  }

  #credit(): void {
    if (this.#inboxBytes > STREAM_INPUT_BYTES || this.#uncredited === 0) return;
    this.#streams.consumed(this.#stream, this.#uncredited);
    this.#uncredited = 0;
  }

  // ---------------------------------------------------------------- the work

  #schedule(): void {
    if (this.#isOver || this.#isScheduled) return;
    this.#isScheduled = true;
    this.#streams.schedule(this.#stream);
  }

  run(): void {
    this.#isScheduled = false;
    if (this.#isOver) return this.#streams.release(this.#stream);
    if (this.#head.context.now() >= this.#deadline) return this.#failWith(Failure.DEADLINE);
    this.#guard(() => this.#handleNext());
  }

  /** One message per turn of the call: those of other calls come between. */
  #handleNext(): void {
    const listener = (this.#listener ??= this.#method.begin(this));
    const bytes = this.#nextMessage();
    if (bytes !== undefined) listener.message(bytes);
    if (this.#isOver) return;
    this.#credit();
    if (bytes !== undefined && this.#inbox.length > 0) this.#schedule();
    else if (this.#isEnded && this.#inbox.length === 0) {
      // Reset, so that the listener is notified of the end only once.
      this.#isEnded = false;
      listener.ended();
    }
  }

  /** Takes the next message that may be handled now. */
  #nextMessage(): Buffer | undefined {
    if ((this.#stream.waiting?.bytes ?? 0) >= STREAM_OUTPUT_BYTES) return undefined;
    const message = this.#inbox.shift();
    if (message === undefined) return undefined;
    const held = message.length + QUEUED_MESSAGE_BYTES;
    this.#inboxBytes -= held;
    this.#streams.releaseHeld(this.#stream, held);
    return message;
  }

  drained(): void {
    if (this.#listener !== undefined) this.#schedule();
  }

  /** What it keeps is accounted for already. */
  waits(): void {}

  send(message: Uint8Array): void {
    if (this.#isOver) return;
    if (!this.#hasSentHeaders) this.#streams.sendHeaders(this.#stream, RESPONSE_HEADERS);
    this.#hasSentHeaders = true;
    this.#streams.sendData(this.#stream, messagePrefix(message.length), message);
  }

  // ---------------------------------------------------------------- the end

  end(): void {
    if (this.#close()) this.#streams.sendTrailers(this.#stream, this.#hasSentHeaders ? TRAILERS_OK : TRAILERS_ONLY_OK);
  }

  fail(status: GrpcStatus, message: string): void {
    this.#failWith({ status, message });
  }

  onCancel(work: Cancellable): void {
    if (!this.#isOver) this.#work = work;
    // Sending may have ended the connection, and with it this call, before there was anything to cancel.
    else this.#guard(() => work.cancel('cancelled'));
  }

  cancel(): void {
    const work = this.#work;
    if (this.#close()) this.#cancelWork(work, 'cancelled');
  }

  expire(): void {
    if (this.#isOver) return;
    if (this.#method.takesOneMessage && !this.#stream.isRemoteEnded && this.#head.context.now() < this.#deadline) {
      this.#streams.rejected('request_timeout');
      return this.#failWith(Failure.SLOW_REQUEST);
    }
    const work = this.#work;
    this.#failWith(Failure.DEADLINE);
    this.#cancelWork(work, 'deadline_exceeded');
  }

  stop(reason: StopReason): void {
    const work = this.#work;
    if (!this.#close()) return;
    this.#streams.stop(this.#stream, this.#blockOf(STOPPED[reason]), reason);
    this.#cancelWork(work, 'cancelled');
  }

  /** Runs a part of the handler. If it throws, the call ends with an internal error. */
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#head.context.handlerFailed(this.#head.path, error);
      this.#failWith(Failure.INTERNAL_ERROR);
    }
  }

  #cancelWork(work: Cancellable | undefined, cause: CancelCause): void {
    if (work !== undefined) this.#guard(() => work.cancel(cause));
  }

  #failWith(failure: CallFailure): void {
    if (this.#close()) this.#streams.sendTrailers(this.#stream, this.#blockOf(failure));
  }

  #blockOf(failure: CallFailure): Buffer {
    return failureBlock(failure, !this.#hasSentHeaders, this.#streams.maxHeaderListBytes);
  }

  /** Returns false if the call was over before. */
  #close(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#work = undefined;
    this.#inbox.length = 0;
    if (this.#stream.isRunning) this.#streams.release(this.#stream);
    return true;
  }
}

import { copyToKeep } from '../http2/protocol';
import type { Stream } from '../http2/stream';
import type { Streams } from '../http2/streams';
import {
  type Cancellable,
  GrpcStatus,
  type MessageListener,
  type StreamingCall,
  type StreamingMethod,
} from '../method';
import { type CallHead, ServerCall } from './call';
import { MessageReader, messagePrefix } from './message-reader';
import { Failure, RESPONSE_HEADERS, TRAILERS_OK, TRAILERS_ONLY_OK } from './responses';

/** Responses of one call that the peer has not read: above this, the next message of the call is not handled. */
const OUTPUT_BYTES = 64 * 1_024;
/** Received messages of one call that are not handled yet: above this, the caller gets no WINDOW_UPDATE. */
const INPUT_BYTES = 64 * 1_024;
/** What a queued message takes in addition to its bytes, at most: its objects, and its place in the queue. */
const QUEUED_MESSAGE_BYTES = 256;

interface QueuedMessage {
  readonly bytes: Buffer;
  readonly isCompressed: boolean;
  /** What it counts towards the memory limit. */
  readonly held: number;
}

/**
 * A call whose response is a stream of messages. Its request is one message, which is handled when the request is
 * complete, or a stream, too. The next message is handled when most of the responses so far have been sent: a caller
 * that does not read them gets no WINDOW_UPDATE and must stop sending.
 */
export class StreamServerCall extends ServerCall implements StreamingCall {
  readonly #method: StreamingMethod;
  readonly #reader: MessageReader;
  #listener: MessageListener | undefined;
  /** The messages that have been received and not handled yet, and what they count towards the memory limit. */
  readonly #inbox: QueuedMessage[] = [];
  #inboxBytes = 0;
  /** Bytes received that have not been returned to the caller's flow-control window yet. */
  #uncredited = 0;
  /** The caller has ended its stream, and the listener does not know yet. */
  #isEnded = false;
  #isScheduled = false;

  /** @param stream stays open */
  constructor(head: CallHead, method: StreamingMethod, streams: Streams, stream: Stream) {
    super(head, streams, stream, method.takesOneMessage ? undefined : Infinity);
    this.#method = method;
    this.#reader = new MessageReader(this, streams, stream);
    if (!method.takesOneMessage) this.#schedule();
  }

  // ---------------------------------------------------------------- the request

  data(source: Buffer, start: number, end: number, isEnded: boolean): void {
    if (this.isOver) return;
    this.#uncredited += end - start;
    this.#reader.read(source, start, end);
    if (this.isOver) return;
    this.#isEnded = isEnded;
    if (isEnded && this.#reader.isInside) return this.failWith(Failure.TRUNCATED_MESSAGE);
    this.#credit();
    if (this.#method.takesOneMessage) {
      if (!isEnded) return;
      if (this.#inbox.length === 0) return this.failWith(Failure.NO_MESSAGE);
      this.completed();
    }
    this.#schedule();
  }

  protected keep(source: Buffer, start: number, end: number, isCompressed: boolean): void {
    const held = end - start + QUEUED_MESSAGE_BYTES;
    if (this.#method.takesOneMessage && this.#inbox.length > 0) return this.failWith(Failure.SECOND_MESSAGE);
    if (!this.streams.hold(this.stream, held)) return this.failWith(Failure.TOO_MUCH_MEMORY);
    // Making room may have ended the connection, and with it this call.
    if (this.isOver) return;
    this.#inbox.push({ bytes: copyToKeep(source, start, end), isCompressed, held });
    this.#inboxBytes += held;
  }

  #credit(): void {
    if (this.#inboxBytes > INPUT_BYTES || this.#uncredited === 0) return;
    this.streams.consumed(this.stream, this.#uncredited);
    this.#uncredited = 0;
  }

  // ---------------------------------------------------------------- the work

  #schedule(): void {
    if (this.isOver || this.#isScheduled) return;
    this.#isScheduled = true;
    this.streams.schedule(this.stream);
  }

  run(): void {
    this.#isScheduled = false;
    if (this.isOver) return this.streams.release(this.stream);
    if (this.head.context.now() >= this.deadline) return this.failWith(Failure.DEADLINE);
    try {
      this.#handleNext();
    } catch (error) {
      this.threw(error);
    }
  }

  /** One message per turn of the call: those of other calls come between. */
  #handleNext(): void {
    const listener = (this.#listener ??= this.#method.begin(this));
    const bytes = this.#nextMessage();
    if (bytes !== undefined) {
      const isPermitted = this.#method.takesOneMessage || this.streams.mayHandleMessage();
      if (!isPermitted) return this.failWith(Failure.TOO_MANY_MESSAGES);
      listener.message(bytes);
    }
    if (this.isOver) return;
    this.#credit();
    if (bytes !== undefined && this.#inbox.length > 0) this.#schedule();
    else if (this.#isEnded && this.#inbox.length === 0 && this.inflation === undefined) {
      // Reset, so that the listener is notified of the end only once.
      this.#isEnded = false;
      listener.ended();
    }
  }

  /** Takes the next message that may be handled now. */
  #nextMessage(): Buffer | undefined {
    if ((this.stream.waiting?.bytes ?? 0) >= OUTPUT_BYTES || this.inflation !== undefined) return undefined;
    const message = this.#inbox.shift();
    if (message === undefined) return undefined;
    const { bytes, isCompressed, held } = message;
    if (isCompressed) {
      this.inflate(bytes, (inflated) => {
        this.#inboxBytes += inflated.length;
        this.#inbox.unshift({ bytes: inflated, isCompressed: false, held: held + inflated.length });
        this.#schedule();
      });
      return undefined;
    }
    this.#inboxBytes -= held;
    this.streams.releaseHeld(this.stream, held);
    return bytes;
  }

  drained(): void {
    if (this.#listener !== undefined) this.#schedule();
  }

  /** What it keeps is accounted for already. */
  waits(): void {}

  send(message: Uint8Array): void {
    if (this.isOver) return;
    if (!this.hasSentHeaders) this.streams.sendHeaders(this.stream, RESPONSE_HEADERS);
    this.hasSentHeaders = true;
    this.streams.sendData(this.stream, messagePrefix(message.length), message);
  }

  onCancel(work: Cancellable): void {
    if (!this.isOver) this.work = work;
    // Sending may have ended the connection, and with it this call, before there was anything to cancel.
    else work.cancel('cancelled');
  }

  // ---------------------------------------------------------------- the end

  end(): void {
    if (!this.close(GrpcStatus.OK)) return;
    this.streams.sendTrailers(this.stream, this.hasSentHeaders ? TRAILERS_OK : TRAILERS_ONLY_OK);
  }

  protected override close(status: GrpcStatus): boolean {
    this.#inbox.length = 0;
    return super.close(status);
  }
}

import { copyToKeep } from '../../http2/protocol';
import type { Stream } from '../../http2/streams/stream';
import type { BidirectionalHandler, MessageListener } from '../../method';
import type { CallHead } from '../requests';
import { STREAM_INPUT_BYTES, STREAM_OUTPUT_BYTES } from '../message-reader';
import { MessageReader, type MessageReceiver, type ReadFailure } from '../message-reader';
import type { Call, CallContext } from './call';
import { DEADLINE, MESSAGE_FAILURES, TRUNCATED_MESSAGE, compressionFailure } from '../responses';
import { StreamingServerCall } from './streaming-call';

/** What a queued message takes in addition to its bytes, at most: its objects, and its place in the queue. */
const QUEUED_MESSAGE_BYTES = 256;

/** A message that has been received and not handled yet. */
interface QueuedMessage {
  readonly bytes: Buffer;
  /** The bytes that it counts towards the memory limit until it is handled. */
  readonly held: number;
}

/**
 * A call of a bidirectional streaming method. Its next message is handled when most of the responses so far have been sent: a
 * caller that does not read them gets no WINDOW_UPDATE and must stop sending.
 */
export class BidirectionalCall extends StreamingServerCall implements MessageReceiver {
  readonly #handle: BidirectionalHandler;
  #listener: MessageListener | undefined;
  readonly #reader = new MessageReader(this);
  readonly #inbox: QueuedMessage[] = [];
  #inboxBytes = 0;
  /** Bytes received that have not been returned to the caller's flow-control window yet. */
  #uncredited = 0;
  #isEnded = false;
  #isScheduled = false;

  constructor(
    context: CallContext,
    stream: Stream<Call>,
    head: CallHead,
    handle: BidirectionalHandler,
    isEnded: boolean,
  ) {
    super(context, stream, head);
    this.#handle = handle;
    this.#isEnded = isEnded;
    this.#schedule();
  }

  data(source: Buffer, start: number, end: number, isEnded: boolean): void {
    if (this.isOver) return;
    this.#uncredited += end - start;
    this.#reader.read(source, start, end);
    if (this.isOver) return;
    this.#isEnded = isEnded;
    if (isEnded && this.#reader.isInside) return this.failWith(TRUNCATED_MESSAGE);
    this.#credit();
    this.#schedule();
  }

  received(source: Buffer, start: number, end: number, isCompressed: boolean): boolean {
    this.stream.messageEnded();
    const held = end - start + QUEUED_MESSAGE_BYTES;
    if (isCompressed) this.failWith(compressionFailure(this.head.hasEncoding));
    else if (!this.hold(held)) this.failed('too much memory');
    if (this.isOver) return false;
    this.#inbox.push({ bytes: copyToKeep(source, start, end), held });
    this.#inboxBytes += held;
    return true;
  }

  failed(failure: ReadFailure): void {
    this.failWith(MESSAGE_FAILURES[failure]);
  }

  hold(bytes: number): boolean {
    return this.stream.hold(bytes);
  }

  releaseHeld(bytes: number): void {
    this.stream.releaseHeld(bytes);
  }

  run(): void {
    this.#isScheduled = false;
    if (this.isOver) return this.stream.release();
    if (this.context.now() >= this.deadline) return this.failWith(DEADLINE);
    this.guard(() => {
      const listener = (this.#listener ??= this.#handle(this));
      const bytes = this.#nextMessage();
      if (bytes !== undefined) listener.message(bytes);
      if (this.isOver) return;
      this.#credit();
      // One message per turn of the call: those of other calls come between.
      if (bytes !== undefined && this.#inbox.length > 0) this.#schedule();
      else if (this.#isEnded && this.#inbox.length === 0) {
        // Reset, so that the listener is notified of the end only once.
        this.#isEnded = false;
        listener.ended();
      }
    });
  }

  /** What it keeps is accounted for already. */
  waits(): void {}

  /** Takes the next message that may be handled now. */
  #nextMessage(): Buffer | undefined {
    const next = this.#inbox[0];
    if (next === undefined || this.stream.waitingBytes >= STREAM_OUTPUT_BYTES) return undefined;
    this.#inbox.shift();
    this.#inboxBytes -= next.held;
    this.releaseHeld(next.held);
    return next.bytes;
  }

  protected override abandonInput(): void {
    this.#inbox.length = 0;
  }

  drained(): void {
    this.#schedule();
  }

  #schedule(): void {
    if (this.isOver || this.#isScheduled) return;
    this.#isScheduled = true;
    this.stream.schedule();
  }

  #credit(): void {
    if (this.#inboxBytes > STREAM_INPUT_BYTES || this.#uncredited === 0) return;
    this.stream.consumed(this.#uncredited);
    this.#uncredited = 0;
  }
}

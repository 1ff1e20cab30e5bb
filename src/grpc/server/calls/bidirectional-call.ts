import { copyToKeep } from '../../http2/frames/copy-buffer';
import type { Stream } from '../../http2/streams/stream';
import type { BidirectionalHandler, MessageListener } from '../../method';
import type { CallHead } from '../headers/request-interpreter';
import { STREAM_INPUT_BYTES, STREAM_OUTPUT_BYTES } from '../limits';
import type { Inflation, InflationFailure } from '../messages/inflater';
import { MessageReader, type MessageReceiver } from '../messages/message-reader';
import type { Call, CallContext } from './call';
import {
  DEADLINE,
  MESSAGE_FAILURES,
  type MessageFailure,
  TRUNCATED_MESSAGE,
  compressionFailure,
} from './call-failures';
import { StreamingServerCall } from './streaming-call';

/** What a queued message takes in addition to its bytes, at most: its objects, and its place in the queue. */
const QUEUED_MESSAGE_BYTES = 256;

/** A message that has been received and not handled yet. */
interface QueuedMessage {
  bytes: Buffer;
  isCompressed: boolean;
  /** The bytes that it counts towards the memory limit until it is handled. */
  held: number;
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
  /** That of the first message in the inbox. */
  #inflation: Inflation | undefined;
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
    const failure = isCompressed ? compressionFailure(this.head.encoding) : undefined;
    const held = end - start + QUEUED_MESSAGE_BYTES;
    if (failure !== undefined) this.failWith(failure);
    else if (!this.hold(held)) this.failed('too much memory');
    if (this.isOver) return false;
    this.#inbox.push({ bytes: copyToKeep(source, start, end), isCompressed, held });
    this.#inboxBytes += held;
    return true;
  }

  failed(failure: MessageFailure): void {
    if (failure === 'inflates too much') this.stream.rejected('inflation');
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
    if (next === undefined || this.#inflation !== undefined) return undefined;
    if (this.stream.waitingBytes >= STREAM_OUTPUT_BYTES) return undefined;
    if (next.isCompressed && !this.#decompress(next)) return undefined;
    this.#inbox.shift();
    this.#inboxBytes -= next.held;
    this.releaseHeld(next.held);
    return next.bytes;
  }

  /** Returns false if the message cannot be decompressed, or not yet: the call is then scheduled when it has been. */
  #decompress(queued: QueuedMessage): boolean {
    const { inflater } = this.context;
    const { connection } = this.stream;
    const result = inflater.inflateNow(connection, queued.bytes);
    if (result === undefined) {
      this.#inflation = inflater.inflateLater(connection, queued.bytes, (later) => {
        this.#inflation = undefined;
        if (!this.#decompressed(queued, later)) return;
        if (!this.hold(queued.bytes.length)) return this.failed('too much memory');
        queued.held += queued.bytes.length;
        this.#inboxBytes += queued.bytes.length;
        this.#schedule();
      });
      return false;
    }
    return this.#decompressed(queued, result);
  }

  #decompressed(queued: QueuedMessage, result: Buffer | InflationFailure): boolean {
    if (typeof result === 'string') {
      this.failed(result);
      return false;
    }
    queued.bytes = result;
    queued.isCompressed = false;
    return true;
  }

  protected override abandonInput(): void {
    this.#inflation?.cancel();
    this.#inflation = undefined;
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

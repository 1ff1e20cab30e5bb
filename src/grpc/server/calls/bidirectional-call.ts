import { copyToKeep } from '../../http2/frames/copy-buffer';
import type { Stream } from '../../http2/streams/stream';
import type { BidirectionalHandler, MessageListener } from '../../method';
import type { CallHead } from '../headers/request-interpreter';
import { STREAM_INPUT_BYTES, STREAM_OUTPUT_BYTES } from '../limits';
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

/** A message that has been received and not handled yet. */
interface QueuedMessage {
  /** Undefined while the message is being decompressed. */
  bytes: Buffer | undefined;
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
    const failure = isCompressed ? compressionFailure(this.head.encoding) : undefined;
    if (failure !== undefined) this.failWith(failure);
    else if (!this.hold(end - start)) this.failed('too much memory');
    if (this.isOver) return false;
    const bytes = copyToKeep(source, start, end);
    const queued: QueuedMessage = { bytes: isCompressed ? undefined : bytes, held: end - start };
    this.#inbox.push(queued);
    this.#inboxBytes += queued.held;
    if (isCompressed) {
      this.context.inflater.inflate(bytes, (result) => {
        if (this.isOver) return;
        if (typeof result === 'string') return this.failed(result);
        queued.bytes = result;
        this.#schedule();
      });
    }
    return !this.isOver;
  }

  failed(failure: MessageFailure): void {
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
      while (!this.isOver && this.stream.waitingBytes < STREAM_OUTPUT_BYTES) {
        const bytes = this.#inbox[0]?.bytes;
        if (bytes === undefined) break;
        const { held } = this.#inbox.shift()!;
        this.#inboxBytes -= held;
        this.releaseHeld(held);
        listener.message(bytes);
      }
      if (this.isOver) return;
      this.#credit();
      if (this.#isEnded && this.#inbox.length === 0) {
        // Reset, so that the listener is notified of the end only once.
        this.#isEnded = false;
        listener.ended();
      }
    });
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

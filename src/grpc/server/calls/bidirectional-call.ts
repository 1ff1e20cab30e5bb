import { copyToKeep } from '../../http2/frames/copy-buffer';
import type { Stream } from '../../http2/streams/stream';
import type { BidirectionalHandler, MessageListener } from '../../method';
import type { Call, CallContext } from './call';
import { CUT_MESSAGE, DEADLINE, INCOMING_FAILURES, compressionFailure } from '../messages/incoming';
import { STREAM_INPUT_BYTES, STREAM_OUTPUT_BYTES } from '../limits';
import { MessageReader, type MessageReceiver } from '../messages/message-reader';
import type { Accepted } from '../heads/request';
import { StreamingServerCall } from './streaming-call';

/** A message that has come and not been handled; its bytes are undefined while they are being inflated. */
interface Waiting {
  bytes: Buffer | undefined;
  /** What it counts for until it is handled. */
  readonly held: number;
}

/**
 * A call of messages in both directions. A message is handled when the answers to those before it have mostly left: a
 * caller that does not read gets no new window, and so has to stop.
 */
export class BidirectionalCall extends StreamingServerCall implements MessageReceiver {
  readonly #handle: BidirectionalHandler;
  #listenerOfMessages: MessageListener | undefined;
  readonly #reader = new MessageReader(this);
  readonly #inbox: Waiting[] = [];
  #inboxBytes = 0;
  /** Received, and not yet given back as window. */
  #uncredited = 0;
  #isEnded = false;
  #isScheduled = false;

  constructor(
    context: CallContext,
    stream: Stream<Call>,
    accepted: Accepted,
    handle: BidirectionalHandler,
    isEnded: boolean,
  ) {
    super(context, stream, accepted);
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
    if (isEnded && this.#reader.isInside) return this.refuse(CUT_MESSAGE);
    this.#credit();
    this.#schedule();
  }

  received(source: Buffer, start: number, end: number, isCompressed: boolean): boolean {
    this.stream.messageEnded();
    const failure = isCompressed ? compressionFailure(this.accepted.encoding) : undefined;
    if (failure !== undefined) this.refuse(failure);
    else if (!this.hold(end - start)) this.failed('too much memory');
    if (this.isOver) return false;
    const bytes = copyToKeep(source, start, end);
    const waiting: Waiting = { bytes: isCompressed ? undefined : bytes, held: end - start };
    this.#inbox.push(waiting);
    this.#inboxBytes += waiting.held;
    if (isCompressed) {
      this.context.inflater.inflate(bytes, (result) => {
        if (this.isOver) return;
        if (typeof result === 'string') return this.failed(result);
        waiting.bytes = result;
        this.#schedule();
      });
    }
    return !this.isOver;
  }

  failed(failure: keyof typeof INCOMING_FAILURES): void {
    this.refuse(INCOMING_FAILURES[failure]);
  }

  hold(bytes: number): boolean {
    return this.stream.hold(bytes);
  }

  letGo(bytes: number): void {
    this.stream.letGo(bytes);
  }

  run(): void {
    this.#isScheduled = false;
    if (this.isOver) return this.stream.release();
    if (this.context.now() >= this.deadline) return this.refuse(DEADLINE);
    this.guard(() => {
      const listener = (this.#listenerOfMessages ??= this.#handle(this));
      while (!this.isOver && this.stream.waitingBytes < STREAM_OUTPUT_BYTES) {
        const bytes = this.#inbox[0]?.bytes;
        if (bytes === undefined) break;
        const { held } = this.#inbox.shift()!;
        this.#inboxBytes -= held;
        this.letGo(held);
        listener.message(bytes);
      }
      if (this.isOver) return;
      this.#credit();
      if (this.#isEnded && this.#inbox.length === 0) {
        // Once: what comes later, comes from the listener itself.
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

import { copyToKeep } from '../http2/protocol';
import type { Stream } from '../http2/stream';
import type { Streams } from '../http2/streams';
import type { CallTrace } from '../../streams/ports/tracer';
import { type Cancellable, GrpcStatus, type UnaryCall, type UnaryHandler } from '../method';
import type { MethodObserver } from '../method-observer';
import { type CallHead, ServerCall } from './call';
import { MessageReader, PREFIX_BYTES, messagePrefix } from './message-reader';
import { Failure, MAX_MESSAGE_BYTES, RESPONSE_HEADERS, TRAILERS_OK } from './responses';

export interface UnaryMethod {
  readonly handle: UnaryHandler;
  readonly observer: MethodObserver | undefined;
}

/** A call of a unary method: a request of exactly one message, and its response. */
export class UnaryServerCall extends ServerCall implements UnaryCall {
  readonly #method: UnaryMethod;
  receivedAt = 0;
  /**
   * The message is `#source[#start, #end)`, from when it has been received until it is handled or not needed any more.
   */
  #source: Buffer | undefined;
  #start = 0;
  #end = 0;
  #isCompressed = false;
  /** The message is in the chunk in which it arrived, and not accounted for. */
  #isInChunk = false;
  /** Reads a request that is more than one DATA frame. */
  #reader: MessageReader | undefined;
  trace: CallTrace | undefined;
  /** Whether the observer of the call knows that the call has begun. */
  #hasBegun = false;

  constructor(head: CallHead, method: UnaryMethod, streams: Streams, stream: Stream) {
    super(head, streams, stream);
    this.#method = method;
  }

  // ---------------------------------------------------------------- the request

  data(source: Buffer, start: number, end: number, isEnded: boolean): void {
    // The common case, without a copy: one DATA frame that is the message and ends the stream.
    if (isEnded && this.#reader === undefined && isSingleMessage(source, start, end)) {
      this.#source = source;
      this.#start = start + PREFIX_BYTES;
      this.#end = end;
      this.#isInChunk = true;
    } else if (!this.#read(source, start, end, isEnded)) return;
    this.receivedAt = this.streams.now;
    this.completed();
    this.streams.schedule(this.stream);
  }

  /** Reads more of the request. Returns true when it is complete. */
  #read(source: Buffer, start: number, end: number, isEnded: boolean): boolean {
    this.#reader ??= new MessageReader(this, this.streams, this.stream);
    this.#reader.read(source, start, end);
    if (this.isOver) return false;
    if (!isEnded) this.streams.consumed(this.stream, end - start);
    else if (this.#reader.isInside) this.failWith(Failure.TRUNCATED_MESSAGE);
    else if (this.#source === undefined) this.failWith(Failure.NO_MESSAGE);
    else return true;
    return false;
  }

  protected keep(source: Buffer, start: number, end: number, isCompressed: boolean): void {
    if (this.#source !== undefined) return this.failWith(Failure.SECOND_MESSAGE);
    if (!this.streams.hold(this.stream, end - start)) return this.failWith(Failure.TOO_MUCH_MEMORY);
    // Making room may have ended the whole connection, and with it this call.
    if (this.isOver) return;
    this.#source = copyToKeep(source, start, end);
    this.#start = 0;
    this.#end = end - start;
    this.#isCompressed = isCompressed;
  }

  waits(): void {
    if (!this.#isInChunk) return;
    this.#isInChunk = false;
    const source = this.#source!;
    this.#source = undefined;
    this.keep(source, this.#start, this.#end, false);
  }

  // ---------------------------------------------------------------- the work

  run(): void {
    const isLate = this.deadline !== Infinity && this.head.context.now() >= this.deadline;
    if (isLate && this.#method.handle.isReport !== true) return this.failWith(Failure.DEADLINE);
    if (this.#isCompressed) {
      return this.inflate(this.#source!, (message) => {
        this.#source = message;
        this.#end = message.length;
        this.#isCompressed = false;
        this.streams.schedule(this.stream);
      });
    }
    // Neither kept here nor counted any more: handlers use the message only until they return.
    this.streams.releaseHeld(this.stream, this.stream.held);
    this.#handle();
  }

  #handle(): void {
    const message = this.#source!.subarray(this.#start, this.#end);
    this.#source = undefined;
    this.#began();
    try {
      this.#method.handle(message, this);
    } catch (error) {
      this.threw(error);
    }
  }

  protected override abandoned(): void {
    const isUnhandled = this.#source !== undefined && this.stream.isRequestComplete;
    if (isUnhandled && !this.#isCompressed && this.#method.handle.isReport === true) this.#handle();
  }

  reply(message: Uint8Array): void {
    if (!this.close(GrpcStatus.OK)) return;
    const { streams, stream } = this;
    streams.sendHeaders(stream, RESPONSE_HEADERS);
    streams.sendData(stream, messagePrefix(message.length), message);
    streams.sendTrailers(stream, TRAILERS_OK);
  }

  onCancel(work: Cancellable): void {
    if (!this.isOver) this.work = work;
  }

  get timeToAnswer(): number {
    const { context, timeoutMs } = this.head;
    return timeoutMs === Infinity ? Infinity : this.deadline - timeoutMs / 5 - context.now();
  }

  get peer(): UnaryCall['peer'] {
    return this.streams.peer;
  }

  metadata(name: string): string | undefined {
    return this.head.metadata?.get(name);
  }

  // ---------------------------------------------------------------- the end

  drained(): void {}

  protected override get mustAnswer(): boolean {
    return this.stream.isRunning && this.work === undefined && this.#source === undefined;
  }

  protected override close(status: GrpcStatus): boolean {
    if (!super.close(status)) return false;
    this.#source = undefined;
    if (!this.stream.isRequestComplete) return true;
    if (!this.#hasBegun) this.#began();
    this.#method.observer?.ended(this, status);
    return true;
  }

  #began(): void {
    this.#hasBegun = true;
    this.trace = this.#method.observer?.began(this);
  }
}

/** Whether the bytes are one complete, uncompressed message and nothing else. */
function isSingleMessage(source: Buffer, start: number, end: number): boolean {
  const length = end - start - PREFIX_BYTES;
  if (length < 0 || length > MAX_MESSAGE_BYTES || source[start] !== 0) return false;
  return length === source.readUInt32BE(start + 1);
}

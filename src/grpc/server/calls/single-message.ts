import { copyToKeep } from '../../http2/protocol';
import type { Stream } from '../../http2/streams/stream';
import type { CallFailure } from '../responses';
import { MAX_MESSAGE_BYTES } from '../message-reader';
import { MessageReader, type MessageReceiver, PREFIX_BYTES, type ReadFailure } from '../message-reader';
import { MESSAGE_FAILURES, NO_MESSAGE, SECOND_MESSAGE, TRUNCATED_MESSAGE, compressionFailure } from '../responses';

/** Receives a request that must be exactly one message. */
export class SingleMessage implements MessageReceiver {
  readonly #stream: Stream<unknown>;
  readonly #hasEncoding: boolean;
  /** The message is `source[start, end)`, once received. */
  #source: Buffer | undefined;
  #start = 0;
  #end = 0;
  /** The message is in the chunk in which it arrived, and not accounted for. */
  #isInChunk = false;
  /** Why there is no message. */
  failure: CallFailure | undefined;
  #reader: MessageReader | undefined;

  /** @param hasEncoding whether the call has a `grpc-encoding` other than identity */
  constructor(stream: Stream<unknown>, hasEncoding: boolean) {
    this.#stream = stream;
    this.#hasEncoding = hasEncoding;
  }

  /** Whether the message has been received, and neither taken nor abandoned. */
  get hasMessage(): boolean {
    return this.#source !== undefined;
  }

  /** Reads more of the request. Returns true when it is complete or has failed. */
  read(source: Buffer, start: number, end: number, isEnded: boolean): boolean {
    // The common case, without a copy: one DATA frame that is the message and ends the stream.
    if (isEnded && this.#reader === undefined && isSingleMessage(source, start, end)) {
      this.#source = source;
      this.#start = start + PREFIX_BYTES;
      this.#end = end;
      this.#isInChunk = true;
      return true;
    }
    this.#reader ??= new MessageReader(this);
    this.#reader.read(source, start, end);
    if (this.failure !== undefined) return true;
    if (!isEnded) {
      this.#stream.consumed(end - start);
      return false;
    }
    if (this.#reader.isInside) this.failure = TRUNCATED_MESSAGE;
    else if (this.#source === undefined) this.failure = NO_MESSAGE;
    return true;
  }

  received(source: Buffer, start: number, end: number, isCompressed: boolean): boolean {
    this.#stream.messageEnded();
    if (this.#source !== undefined) this.failure = SECOND_MESSAGE;
    else if (isCompressed) this.failure = compressionFailure(this.#hasEncoding);
    // Copied, because the request may end much later: a view would keep the whole chunk in memory.
    if (this.failure === undefined && !this.hold(end - start)) this.failed('too much memory');
    if (this.failure !== undefined) return false;
    this.#source = copyToKeep(source, start, end);
    this.#start = 0;
    this.#end = end - start;
    return true;
  }

  failed(failure: ReadFailure): void {
    this.failure = MESSAGE_FAILURES[failure];
  }

  hold(bytes: number): boolean {
    return this.#stream.hold(bytes);
  }

  releaseHeld(bytes: number): void {
    this.#stream.releaseHeld(bytes);
  }

  /**
   * Keeps the message for longer than this turn: copies it, as its chunk may be much larger, and accounts for it. Returns false, and
   * sets {@link failure}, if there is no memory for it.
   */
  keep(): boolean {
    if (!this.#isInChunk || this.#source === undefined) return true;
    this.#isInChunk = false;
    const length = this.#end - this.#start;
    if (!this.hold(length)) {
      this.failed('too much memory');
      this.#source = undefined;
      return false;
    }
    // Making room may have ended the whole connection, and with it this call.
    if (this.#source === undefined) return true;
    this.#source = copyToKeep(this.#source, this.#start, this.#end);
    this.#start = 0;
    this.#end = length;
    return true;
  }

  /** The message is not needed. */
  abandon(): void {
    this.#source = undefined;
  }

  /** The message. It is neither kept here nor counted any more: handlers use it only until they return. */
  take(): Buffer {
    if (this.#stream.held > 0) this.releaseHeld(this.#stream.held);
    const message = this.#source!.subarray(this.#start, this.#end);
    this.#source = undefined;
    return message;
  }
}

/** Whether the bytes are one complete, uncompressed message and nothing else. */
function isSingleMessage(source: Buffer, start: number, end: number): boolean {
  const length = end - start - PREFIX_BYTES;
  if (length < 0 || length > MAX_MESSAGE_BYTES || source[start] !== 0) return false;
  return length === source.readUInt32BE(start + 1);
}

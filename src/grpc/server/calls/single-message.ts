import { copyToKeep } from '../../http2/frames/copy-buffer';
import type { Stream } from '../../http2/streams/stream';
import type { Encoding } from '../headers/request-interpreter';
import type { CallFailure } from '../headers/responses';
import { MAX_MESSAGE_BYTES } from '../limits';
import type { Inflater, Inflation, InflationFailure } from '../messages/inflater';
import { MessageReader, type MessageReceiver, PREFIX_BYTES } from '../messages/message-reader';
import {
  MESSAGE_FAILURES,
  type MessageFailure,
  NO_MESSAGE,
  SECOND_MESSAGE,
  TRUNCATED_MESSAGE,
  compressionFailure,
} from './call-failures';

/** Receives a request that must be exactly one message. */
export class SingleMessage implements MessageReceiver {
  readonly #stream: Stream<unknown>;
  readonly #encoding: Encoding;
  /** The message is `source[start, end)`, once received. */
  #source: Buffer | undefined;
  #start = 0;
  #end = 0;
  #isCompressed = false;
  /** The message is in the chunk in which it arrived, and not accounted for. */
  #isInChunk = false;
  #inflation: Inflation | undefined;
  /** Why there is no message. */
  failure: CallFailure | undefined;
  #reader: MessageReader | undefined;

  constructor(stream: Stream<unknown>, encoding: Encoding) {
    this.#stream = stream;
    this.#encoding = encoding;
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
    else if (isCompressed) this.failure = compressionFailure(this.#encoding);
    // Copied, because the request may end much later: a view would keep the whole chunk in memory.
    if (this.failure === undefined && !this.hold(end - start)) this.failed('too much memory');
    if (this.failure !== undefined) return false;
    this.#source = copyToKeep(source, start, end);
    this.#start = 0;
    this.#end = end - start;
    this.#isCompressed = isCompressed;
    return true;
  }

  failed(failure: MessageFailure): void {
    if (failure === 'inflates too much') this.#stream.rejected('inflation');
    this.failure = MESSAGE_FAILURES[failure];
  }

  hold(bytes: number): boolean {
    return this.#stream.hold(bytes);
  }

  releaseHeld(bytes: number): void {
    this.#stream.releaseHeld(bytes);
  }

  /**
   * Makes {@link take} or {@link failure} available. Returns false if that takes a thread: the stream is then scheduled once more,
   * when it is done, unless {@link abandon} is called.
   */
  decompress(inflater: Inflater): boolean {
    if (!this.#isCompressed) return true;
    const { connection } = this.#stream;
    const compressed = this.#source!;
    const result = inflater.inflateNow(connection, compressed);
    if (result !== undefined) {
      this.#decompressed(result);
      return true;
    }
    this.#inflation = inflater.inflateLater(connection, compressed, (later) => {
      this.#decompressed(later);
      // Waits for its turn, and counts towards the memory of its connection until then.
      if (Buffer.isBuffer(later)) this.#account(later.length);
      this.#stream.schedule();
    });
    return false;
  }

  #decompressed(result: Buffer | InflationFailure): void {
    this.#isCompressed = false;
    if (typeof result === 'string') {
      this.failed(result);
      this.#source = undefined;
      return;
    }
    this.releaseHeld(this.#end - this.#start);
    this.#source = result;
    this.#start = 0;
    this.#end = result.length;
  }

  /**
   * Keeps the message for longer than this turn: copies it, as its chunk may be much larger, and accounts for it. Returns false, and
   * sets {@link failure}, if there is no memory for it.
   */
  keep(): boolean {
    if (!this.#isInChunk || this.#source === undefined) return true;
    this.#isInChunk = false;
    const length = this.#end - this.#start;
    if (!this.#account(length)) return false;
    // Making room may have ended the whole connection, and with it this call.
    if (this.#source === undefined) return true;
    this.#source = copyToKeep(this.#source, this.#start, this.#end);
    this.#start = 0;
    this.#end = length;
    return true;
  }

  /** Counts the message towards the memory of its connection. Returns false, and drops it, if there is no memory for it. */
  #account(length: number): boolean {
    if (this.hold(length)) return true;
    this.failed('too much memory');
    this.#source = undefined;
    return false;
  }

  /** Releases the message, and ends the work that {@link decompress} has begun. Returns false if there is no such work. */
  abandon(): boolean {
    this.#source = undefined;
    if (this.#inflation === undefined) return false;
    this.#inflation.cancel();
    this.#inflation = undefined;
    return true;
  }

  /** The message. It is neither kept here nor counted any more: handlers use it only until they return. */
  take(): Buffer {
    if (this.#stream.held > 0) this.releaseHeld(this.#stream.held);
    const message = this.#source!.subarray(this.#start, this.#end);
    this.#inflation = undefined;
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

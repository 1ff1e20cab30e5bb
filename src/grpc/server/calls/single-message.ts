import { copyToKeep } from '../../http2/frames/copy-buffer';
import type { Stream } from '../../http2/streams/stream';
import type { Encoding } from '../headers/request-interpreter';
import { MAX_MESSAGE_BYTES } from '../limits';
import { MessageReader, type MessageReceiver, PREFIX_BYTES } from '../messages/message-reader';
import type { CallContext } from './call';
import {
  type CallFailure,
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
  /** The message is `source[start, end)`, once received; compressed if {@link isCompressed}. */
  source: Buffer | undefined;
  start = 0;
  end = 0;
  isCompressed = false;
  /** Why there is no message. */
  failure: CallFailure | undefined;
  #reader: MessageReader | undefined;

  constructor(stream: Stream<unknown>, encoding: Encoding) {
    this.#stream = stream;
    this.#encoding = encoding;
  }

  /** Reads more of the request. Returns true when it is complete or has failed. */
  read(source: Buffer, start: number, end: number, isEnded: boolean): boolean {
    // The common case, without a copy: one DATA frame that is the message and ends the stream.
    if (isEnded && this.#reader === undefined && isSingleMessage(source, start, end)) {
      this.source = source;
      this.start = start + PREFIX_BYTES;
      this.end = end;
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
    else if (this.source === undefined) this.failure = NO_MESSAGE;
    return true;
  }

  received(source: Buffer, start: number, end: number, isCompressed: boolean): boolean {
    this.#stream.messageEnded();
    if (this.source !== undefined) this.failure = SECOND_MESSAGE;
    else if (isCompressed) this.failure = compressionFailure(this.#encoding);
    // Copied, because the request may end much later: a view would keep the whole chunk in memory.
    if (this.failure === undefined && !this.hold(end - start)) this.failed('too much memory');
    if (this.failure !== undefined) return false;
    this.source = copyToKeep(source, start, end);
    this.start = 0;
    this.end = end - start;
    this.isCompressed = isCompressed;
    return true;
  }

  failed(failure: MessageFailure): void {
    this.failure = MESSAGE_FAILURES[failure];
  }

  hold(bytes: number): boolean {
    return this.#stream.hold(bytes);
  }

  releaseHeld(bytes: number): void {
    this.#stream.releaseHeld(bytes);
  }

  /** Calls `done` with the decompressed message or the failure, synchronously or later. */
  inflate(context: CallContext, done: (message: Buffer | CallFailure) => void): void {
    const message = this.source!.subarray(this.start, this.end);
    if (!this.isCompressed) return done(message);
    context.inflater.inflate(message, (result) => done(typeof result === 'string' ? MESSAGE_FAILURES[result] : result));
  }
}

/** Whether the bytes are one complete, uncompressed message and nothing else. */
function isSingleMessage(source: Buffer, start: number, end: number): boolean {
  const length = end - start - PREFIX_BYTES;
  if (length < 0 || length > MAX_MESSAGE_BYTES || source[start] !== 0) return false;
  return length === source.readUInt32BE(start + 1);
}

import { copyToKeep } from '../../http2/frames/copy-buffer';
import type { Stream } from '../../http2/streams/stream';
import type { CallContext } from './call';
import {
  CUT_MESSAGE,
  type CallFailure,
  INCOMING_FAILURES,
  NO_MESSAGE,
  SECOND_MESSAGE,
  compressionFailure,
} from '../messages/incoming';
import { MAX_MESSAGE_BYTES } from '../limits';
import { MessageReader, type MessageReceiver, PREFIX_BYTES } from '../messages/message-reader';
import type { Encoding } from '../heads/request';

/** Takes in a request that is one message, whole and alone. */
export class SingleMessage implements MessageReceiver {
  readonly #stream: Stream<unknown>;
  readonly #encoding: Encoding;
  /** The message, once there is one; still compressed where {@link isCompressed}. */
  source: Buffer | undefined;
  start = 0;
  end = 0;
  isCompressed = false;
  /** Why there is none. */
  failure: CallFailure | undefined;
  #reader: MessageReader | undefined;

  constructor(stream: Stream<unknown>, encoding: Encoding) {
    this.#stream = stream;
    this.#encoding = encoding;
  }

  /** More of the request. True when it is complete, or has failed. */
  read(source: Buffer, start: number, end: number, isEnded: boolean): boolean {
    // As nearly all requests come: one frame that is the message and ends the stream.
    if (isEnded && this.#reader === undefined && isWhole(source, start, end)) {
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
    if (this.#reader.isInside) this.failure = CUT_MESSAGE;
    else if (this.source === undefined) this.failure = NO_MESSAGE;
    return true;
  }

  received(source: Buffer, start: number, end: number, isCompressed: boolean): boolean {
    this.#stream.messageEnded();
    if (this.source !== undefined) this.failure = SECOND_MESSAGE;
    else if (isCompressed) this.failure = compressionFailure(this.#encoding);
    // The end of the request may come much later: a view would keep the whole chunk.
    if (this.failure === undefined && !this.hold(end - start)) this.failed('too much memory');
    if (this.failure !== undefined) return false;
    this.source = copyToKeep(source, start, end);
    this.start = 0;
    this.end = end - start;
    this.isCompressed = isCompressed;
    return true;
  }

  failed(failure: keyof typeof INCOMING_FAILURES): void {
    this.failure = INCOMING_FAILURES[failure];
  }

  hold(bytes: number): boolean {
    return this.#stream.hold(bytes);
  }

  letGo(bytes: number): void {
    this.#stream.letGo(bytes);
  }

  /** Hands over the message as it was before compression, or what is wrong with it; now or later. */
  inflate(context: CallContext, done: (message: Buffer | CallFailure) => void): void {
    const message = this.source!.subarray(this.start, this.end);
    if (!this.isCompressed) return done(message);
    context.inflater.inflate(message, (result) =>
      done(typeof result === 'string' ? INCOMING_FAILURES[result] : result),
    );
  }
}

/** One uncompressed message, whole and alone. */
function isWhole(source: Buffer, start: number, end: number): boolean {
  const length = end - start - PREFIX_BYTES;
  if (length < 0 || length > MAX_MESSAGE_BYTES || source[start] !== 0) return false;
  return length === source.readUInt32BE(start + 1);
}

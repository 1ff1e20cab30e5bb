import type { Stream } from '../../http2/streams/stream';
import type { ServerStreamingHandler } from '../../method';
import type { CallHead } from '../requests';
import { REQUEST_TIMEOUT_MS } from '../message-reader';
import type { Call, CallContext } from './call';
import { DEADLINE, SLOW_REQUEST } from '../responses';
import { SingleMessage } from './single-message';
import { StreamingServerCall } from './streaming-call';

/** A call of a server streaming method. */
export class ServerStreamingCall extends StreamingServerCall {
  readonly #handle: ServerStreamingHandler;
  readonly #request: SingleMessage;

  constructor(
    context: CallContext,
    stream: Stream<Call>,
    head: CallHead,
    handle: ServerStreamingHandler,
    isEnded: boolean,
  ) {
    super(context, stream, head);
    this.#handle = handle;
    this.#request = new SingleMessage(stream, head.hasEncoding);
    if (isEnded) this.data(NOTHING, 0, 0, true);
    else stream.expireAt(Math.min(this.deadline, stream.connection.now + REQUEST_TIMEOUT_MS));
  }

  data(source: Buffer, start: number, end: number, isEnded: boolean): void {
    if (this.isOver || !this.#request.read(source, start, end, isEnded)) return;
    this.stream.expireAt(this.deadline);
    this.stream.requestCompleted();
    if (this.#request.failure === undefined) this.stream.schedule();
    else this.failWith(this.#request.failure);
  }

  run(): void {
    if (this.isOver) return this.stream.release();
    if (this.context.now() >= this.deadline) return this.failWith(DEADLINE);
    this.guard(() => this.#handle(this.#request.take(), this));
  }

  waits(): void {
    if (!this.isOver && !this.#request.keep()) this.failWith(this.#request.failure!);
  }

  override expire(): void {
    if (this.stream.isRemoteEnded || this.context.now() >= this.deadline) return super.expire();
    this.stream.rejected('request_timeout');
    this.failWith(SLOW_REQUEST);
  }

  drained(): void {}

  protected override abandonInput(): void {
    this.#request.abandon();
  }
}

const NOTHING = Buffer.alloc(0);

import type { Stream } from '../../http2/streams/stream';
import type { ServerStreamingHandler } from '../../method';
import type { Call, CallContext } from './call';
import { DEADLINE, SLOW_REQUEST } from '../messages/incoming';
import { REQUEST_MS } from '../limits';
import type { Accepted } from '../heads/request';
import { SingleMessage } from './single-message';
import { StreamingServerCall } from './streaming-call';

/** A call of one message in and any number out. */
export class ServerStreamingCall extends StreamingServerCall {
  readonly #handle: ServerStreamingHandler;
  readonly #request: SingleMessage;

  constructor(
    context: CallContext,
    stream: Stream<Call>,
    accepted: Accepted,
    handle: ServerStreamingHandler,
    isEnded: boolean,
  ) {
    super(context, stream, accepted);
    this.#handle = handle;
    this.#request = new SingleMessage(stream, accepted.encoding);
    if (isEnded) this.data(NOTHING, 0, 0, true);
    else stream.expireAt(Math.min(this.deadline, stream.connection.now + REQUEST_MS));
  }

  data(source: Buffer, start: number, end: number, isEnded: boolean): void {
    if (this.isOver || !this.#request.read(source, start, end, isEnded)) return;
    this.stream.expireAt(this.deadline);
    if (this.#request.failure === undefined) this.stream.schedule();
    else this.refuse(this.#request.failure);
  }

  run(): void {
    this.#request.inflate(this.context, (message) => {
      if (this.isOver) return;
      if (!Buffer.isBuffer(message)) this.refuse(message);
      else if (this.context.now() >= this.deadline) this.refuse(DEADLINE);
      else this.guard(() => this.#handle(message, this));
    });
  }

  override expire(): void {
    if (this.stream.isRemoteEnded || this.context.now() >= this.deadline) return super.expire();
    this.context.requestTimedOut();
    this.refuse(SLOW_REQUEST);
  }

  drained(): void {}
}

const NOTHING = Buffer.alloc(0);

import type { CancelCause } from '../../../streams/ports/decide';
import type { Stream } from '../../http2/streams/stream';
import type { Cancellable, GrpcStatus, UnaryCall, UnaryHandler } from '../../method';
import type { Call, CallContext } from './call';
import { DEADLINE, DEFECT, type CallFailure, SLOW_REQUEST } from '../messages/incoming';
import { REQUEST_MS } from '../limits';
import type { Accepted } from '../heads/request';
import { RESPONSE_HEAD, TRAILERS_OK } from '../heads/responses';
import { SingleMessage } from './single-message';
import { writePrefix } from '../messages/message-reader';

/** One unary call, from its first frame to its answer. */
export class UnaryServerCall implements Call, UnaryCall {
  readonly #context: CallContext;
  readonly #stream: Stream<Call>;
  readonly #accepted: Accepted;
  readonly #handle: UnaryHandler;
  readonly #request: SingleMessage;
  readonly #deadline: number;
  #isAnswered = false;
  #isCancelled = false;
  #work: Cancellable | undefined;

  constructor(context: CallContext, stream: Stream<Call>, accepted: Accepted, handle: UnaryHandler, isEnded: boolean) {
    this.#context = context;
    this.#stream = stream;
    this.#accepted = accepted;
    this.#handle = handle;
    const { now } = stream.connection;
    this.#request = new SingleMessage(stream, accepted.encoding);
    this.#deadline = now + accepted.timeoutMs;
    const limit = isEnded ? Infinity : now + REQUEST_MS;
    stream.expireAt(Math.min(this.#deadline, limit));
    if (isEnded) this.data(NOTHING, 0, 0, true);
  }

  data(source: Buffer, start: number, end: number, isEnded: boolean): void {
    if (!this.#request.read(source, start, end, isEnded)) return;
    this.#stream.expireAt(this.#deadline);
    if (this.#request.failure === undefined) this.#stream.schedule();
    else this.#refuse(this.#request.failure);
  }

  run(): void {
    if (this.#isExpired()) return;
    if (!this.#request.isCompressed) {
      this.#invoke(this.#request.source!.subarray(this.#request.start, this.#request.end));
      return;
    }
    this.#request.inflate(this.#context, (message) => {
      if (this.#isCancelled) this.#release();
      else if (!Buffer.isBuffer(message)) this.fail(message.status, message.message);
      else if (!this.#isExpired()) this.#invoke(message);
    });
  }

  reply(message: Uint8Array): void {
    if (!this.#release() || this.#isCancelled) return;
    const stream = this.#stream;
    stream.sendHeaders(RESPONSE_HEAD);
    stream.sendData(writePrefix(message.length), message);
    stream.sendTrailers(TRAILERS_OK);
  }

  fail(status: GrpcStatus, message: string): void {
    if (this.#release() && !this.#isCancelled) this.#refuse({ status, message });
  }

  onCancel(work: Cancellable): void {
    if (!this.#isAnswered) this.#work = work;
  }

  metadata(name: string): string | undefined {
    return this.#accepted.metadata?.get(name);
  }

  /** A handler that said what to cancel is over with this; the place of one that did not stays taken until it answers. */
  cancel(cause: CancelCause): void {
    this.#isCancelled = true;
    const work = this.#work;
    if (work === undefined || this.#isAnswered) return;
    this.#release();
    this.#cancelWork(work, cause);
  }

  expire(): void {
    if (this.#isAnswered) return;
    if (!this.#stream.isRemoteEnded && this.#context.now() < this.#deadline) {
      this.#context.requestTimedOut();
      this.#refuse(SLOW_REQUEST);
      return;
    }
    this.#isCancelled = true;
    this.#refuse(DEADLINE);
    this.cancel('deadline_exceeded');
  }

  drained(): void {}

  leave(): void {}

  #isExpired(): boolean {
    if (this.#deadline === Infinity || this.#context.now() < this.#deadline) return false;
    this.fail(DEADLINE.status, DEADLINE.message);
    return true;
  }

  #invoke(message: Buffer): void {
    try {
      this.#handle(message, this);
    } catch (error) {
      this.#context.threw(this.#accepted.path, error);
      this.fail(DEFECT.status, DEFECT.message);
    }
  }

  #cancelWork(work: Cancellable, cause: CancelCause): void {
    try {
      work.cancel(cause);
    } catch (error) {
      this.#context.threw(this.#accepted.path, error);
    }
  }

  #refuse({ status, message }: CallFailure): void {
    const stream = this.#stream;
    stream.sendTrailers(this.#context.failures.of(status, message, true, stream.connection.peerMaxHeaderListBytes));
  }

  /** The handler's work is over; false when it was before. */
  #release(): boolean {
    if (this.#isAnswered) return false;
    this.#isAnswered = true;
    this.#work = undefined;
    this.#stream.release();
    return true;
  }
}

const NOTHING = Buffer.alloc(0);

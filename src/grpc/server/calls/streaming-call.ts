import type { CancelCause } from '../../../streams/ports/decide';
import type { Stream } from '../../http2/streams/stream';
import type { Cancellable, GrpcStatus, StreamingCall } from '../../method';
import type { Call, CallContext } from './call';
import { DEADLINE, DEFECT, type CallFailure, LEAVING } from '../messages/incoming';
import type { Accepted } from '../heads/request';
import { ONLY_OK, RESPONSE_HEAD, TRAILERS_OK } from '../heads/responses';
import { writePrefix } from '../messages/message-reader';

/** The answering half of a call that may answer any number of messages, and its end. */
export abstract class StreamingServerCall implements Call, StreamingCall {
  /** Status sent, or nobody there to read it. */
  protected isOver = false;
  protected readonly deadline: number;
  #hasBegun = false;
  #work: Cancellable | undefined;

  constructor(
    protected readonly context: CallContext,
    protected readonly stream: Stream<Call>,
    protected readonly accepted: Accepted,
  ) {
    this.deadline = stream.connection.now + accepted.timeoutMs;
    stream.expireAt(this.deadline);
  }

  abstract data(source: Buffer, start: number, end: number, isEnded: boolean): void;
  abstract run(): void;
  abstract drained(): void;

  send(message: Uint8Array): void {
    if (this.isOver) return;
    const { stream } = this;
    if (!this.#hasBegun) stream.sendHeaders(RESPONSE_HEAD);
    this.#hasBegun = true;
    stream.sendData(writePrefix(message.length), message);
  }

  end(): void {
    if (this.#close()) this.stream.sendTrailers(this.#hasBegun ? TRAILERS_OK : ONLY_OK);
  }

  fail(status: GrpcStatus, message: string): void {
    if (!this.#close()) return;
    const { failures } = this.context;
    const maxListBytes = this.stream.connection.peerMaxHeaderListBytes;
    this.stream.sendTrailers(failures.of(status, message, !this.#hasBegun, maxListBytes));
  }

  onCancel(work: Cancellable): void {
    if (!this.isOver) this.#work = work;
  }

  cancel(cause: CancelCause): void {
    const work = this.#work;
    if (this.#close()) this.#cancelWork(work, cause);
  }

  expire(): void {
    this.#abandon(DEADLINE, 'deadline_exceeded');
  }

  leave(): void {
    this.#abandon(LEAVING, 'cancelled');
  }

  /** Calls into a handler; what it throws ends the call. */
  protected guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.context.threw(this.accepted.path, error);
      this.refuse(DEFECT);
    }
  }

  protected refuse({ status, message }: CallFailure): void {
    this.fail(status, message);
  }

  #abandon(failure: CallFailure, cause: CancelCause): void {
    const work = this.#work;
    if (this.isOver) return;
    this.refuse(failure);
    this.#cancelWork(work, cause);
  }

  #cancelWork(work: Cancellable | undefined, cause: CancelCause): void {
    if (work !== undefined) this.guard(() => work.cancel(cause));
  }

  #close(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.#work = undefined;
    if (this.stream.isRunning) this.stream.release();
    return true;
  }
}

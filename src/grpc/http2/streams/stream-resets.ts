import { ErrorCode } from '../protocol';
import type { AbuseLimits } from '../limits/abuse-limits';
import type { Rejection } from '../limits/rejections';
import { Ending } from './closed-streams';
import type { ConnectionControl } from './connection-control';
import type { SendQueue } from './send-queue';
import type { StreamIds } from './stream-ids';

export interface StreamResetsParts<S> {
  readonly control: ConnectionControl;
  readonly abuseLimits: AbuseLimits;
  readonly sendQueue: SendQueue<S>;
  readonly ids: StreamIds;
}

/** Writes RST_STREAM, and answers with it what the peer sends on streams that are not open. */
export class StreamResets<S> {
  readonly #control: ConnectionControl;
  readonly #abuseLimits: AbuseLimits;
  readonly #sendQueue: SendQueue<S>;
  readonly #ids: StreamIds;

  constructor({ control, abuseLimits, sendQueue, ids }: StreamResetsParts<S>) {
    this.#control = control;
    this.#abuseLimits = abuseLimits;
    this.#sendQueue = sendQueue;
    this.#ids = ids;
  }

  /** Rejects a stream instead of opening it. */
  unopened(id: number, code: ErrorCode, rejection: Rejection, isFault: boolean): void {
    this.#control.rejected(rejection);
    this.#ids.closed.add(id, Ending.RESET_BY_US);
    this.write(id, code, isFault);
  }

  /** Answers a frame on a closed stream. */
  closed(id: number, code: ErrorCode): void {
    this.#control.rejected('stream_error');
    this.#ids.closed.markReset(id);
    this.write(id, code, true);
  }

  /** Answers DATA on a closed stream that is not remembered (section 6.1). */
  forgotten(id: number): void {
    this.write(id, ErrorCode.STREAM_CLOSED, false);
  }

  /** `isFault`: the peer caused it by a mistake, of which it may make only so many. */
  write(id: number, code: ErrorCode, isFault: boolean): void {
    const control = this.#control;
    if (control.hasEnded || !control.mayControl()) return;
    this.#sendQueue.writer.reset(id, code);
    if (isFault) this.#abuseLimits.chargeFault(control.now);
  }
}

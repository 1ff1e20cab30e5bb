import type { AbuseLimits } from '../limits/abuse-limits';
import { Ending } from '../streams/closed-streams';
import { ConnectionError } from '../frames/errors';
import type { FrameWriter } from '../frames/frame-writer';
import { ErrorCode, Flag } from '../frames/protocol';
import type { ServerContext } from '../streams/server-context';
import type { Streams } from '../streams/streams';
import type { ConnectionControl } from '../streams/connection-control';

const { END_STREAM, PADDED } = Flag;

/** DATA (RFC 9113, section 6.1), and the windows that it is charged to. */
export class DataFrames<S> {
  readonly #whole: ConnectionControl;
  readonly #context: ServerContext<unknown, S>;
  readonly #streams: Streams<S>;
  readonly #writer: FrameWriter;
  readonly #allowances: AbuseLimits;
  #window: number;
  #unrefunded = 0;

  constructor(
    whole: ConnectionControl,
    context: ServerContext<unknown, S>,
    streams: Streams<S>,
    writer: FrameWriter,
    allowances: AbuseLimits,
  ) {
    this.#whole = whole;
    this.#context = context;
    this.#streams = streams;
    this.#writer = writer;
    this.#allowances = allowances;
    this.#window = context.limits.connectionWindowBytes;
  }

  onData(flags: number, id: number, source: Buffer, frameStart: number, frameEnd: number): void {
    const whole = this.#whole;
    const context = this.#context;
    const streams = this.#streams;
    const allowances = this.#allowances;
    let start = frameStart;
    let end = frameEnd;
    if ((flags & PADDED) !== 0) {
      end -= source[start++]!;
      if (end < start)
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'padding longer than the frame');
    }
    const charged = frameEnd - frameStart;
    this.#chargeWindow(charged);
    const stream = streams.get(id);
    if (stream === undefined) return this.#onLateData(id);
    if (stream.isRemoteEnded) return streams.resetStream(stream, ErrorCode.STREAM_CLOSED, 'stream_error');
    if (charged > stream.receiveWindow)
      return streams.resetStream(stream, ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error');

    const length = end - start;
    const endStream = (flags & END_STREAM) !== 0;
    stream.receiveWindow -= charged;
    if (stream.contentLeft !== undefined) {
      stream.contentLeft -= length;
      if (stream.contentLeft < 0 || (endStream && stream.contentLeft > 0)) {
        return streams.resetStream(stream, ErrorCode.PROTOCOL_ERROR, 'malformed');
      }
    }
    if (endStream) {
      stream.isRemoteEnded = true;
      stream.messageEnded();
    } else {
      if (charged > length) streams.refund(stream, charged - length);
      if (length === 0) allowances.chargeFault(whole.now);
      else if (length < context.limits.smallDataBytes) {
        stream.smallDataCharged += allowances.chargeSmallData(whole.now, length);
      }
      if (whole.isOver) return;
    }
    context.application.data(stream, source, start, end, endStream);
  }

  #onLateData(id: number): void {
    const streams = this.#streams;
    if (streams.numbers.isIdle(id))
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'DATA on an idle stream');
    const ending = streams.numbers.endingOf(id);
    if (ending === Ending.ENDED || ending === Ending.RESET_BY_PEER) streams.resetClosed(id, ErrorCode.STREAM_CLOSED);
    else if (ending === Ending.UNKNOWN) this.#allowances.chargeIdleFrame(this.#whole.now);
  }

  /** The connection's; a stream's own is refunded as the application consumes. */
  #chargeWindow(bytes: number): void {
    if (bytes > this.#window) {
      throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error', 'connection window exceeded');
    }
    this.#window -= bytes;
    // Refunded whatever becomes of the bytes: what is kept of them is bounded by other means than this window.
    this.#unrefunded += bytes;
    if (this.#unrefunded * 2 >= this.#context.limits.connectionWindowBytes && this.#whole.mayControl()) {
      this.#writer.windowUpdate(0, this.#unrefunded);
      this.#window += this.#unrefunded;
      this.#unrefunded = 0;
    }
  }
}

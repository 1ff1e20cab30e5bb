import { ConnectionError, protocolError } from '../protocol';
import type { FrameWriter } from '../frames/frame-writer';
import { ErrorCode, Flag } from '../protocol';
import type { AbuseLimits } from '../limits/abuse-limits';
import { Ending } from '../streams/closed-streams';
import type { ConnectionControl, ServerContext } from '../streams/connection-control';
import type { Streams } from '../streams/streams';

const { END_STREAM, PADDED } = Flag;

export interface DataFramesParts<S> {
  readonly control: ConnectionControl;
  readonly context: ServerContext<unknown, S>;
  readonly abuseLimits: AbuseLimits;
  readonly streams: Streams<S>;
  readonly writer: Pick<FrameWriter, 'windowUpdate'>;
}

/** DATA frames (RFC 9113, section 6.1), and the flow-control windows that they are charged to. */
export class DataFrames<S> {
  readonly #control: ConnectionControl;
  readonly #context: ServerContext<unknown, S>;
  readonly #abuseLimits: AbuseLimits;
  readonly #streams: Streams<S>;
  readonly #writer: DataFramesParts<S>['writer'];
  /** Bytes that the peer may send on the connection. */
  #window: number;
  /** Bytes received that no WINDOW_UPDATE has returned to the peer. */
  #unrefunded = 0;

  constructor({ control, context, abuseLimits, streams, writer }: DataFramesParts<S>) {
    this.#control = control;
    this.#context = context;
    this.#abuseLimits = abuseLimits;
    this.#streams = streams;
    this.#writer = writer;
    this.#window = context.limits.connectionWindowBytes;
  }

  onData(flags: number, id: number, source: Buffer, frameStart: number, frameEnd: number): void {
    const streams = this.#streams;
    let start = frameStart;
    let end = frameEnd;
    if ((flags & PADDED) !== 0) {
      end -= source[start]!;
      start += 1;
      if (end < start) protocolError('padding longer than the frame');
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
    stream.bodyBytes += length;
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
      const control = this.#control;
      const abuseLimits = this.#abuseLimits;
      if (charged > length) streams.refund(stream, charged - length);
      if (length === 0) abuseLimits.chargeFault(control.now);
      else if (length < this.#context.limits.smallDataBytes) {
        stream.smallDataCharged += abuseLimits.chargeSmallData(control.now, length);
      }
      if (control.hasEnded) return;
    }
    this.#context.application.data(stream, source, start, end, endStream);
  }

  #onLateData(id: number): void {
    const { ids } = this.#streams;
    if (ids.isIdle(id)) protocolError('DATA on an idle stream');
    const ending = ids.endingOf(id);
    if (ending === Ending.ENDED || ending === Ending.RESET_BY_PEER) {
      this.#streams.resets.closed(id, ErrorCode.STREAM_CLOSED);
    } else if (ending === Ending.UNKNOWN) {
      // Never opened, or forgotten: the peer may have sent it before our reset arrived, so it is no fault.
      this.#abuseLimits.chargeIdleFrame(this.#control.now);
      this.#streams.resets.forgotten(id);
    }
  }

  /** Charges the window of the connection. That of a stream is refunded as the application consumes its bytes. */
  #chargeWindow(bytes: number): void {
    if (bytes > this.#window) {
      throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error', 'connection window exceeded');
    }
    this.#window -= bytes;
    // Always refunded: what the application keeps of the bytes is limited by Stream.hold, not by this window.
    this.#unrefunded += bytes;
    if (this.#unrefunded * 2 >= this.#context.limits.connectionWindowBytes && this.#control.mayControl()) {
      this.#writer.windowUpdate(0, this.#unrefunded);
      this.#window += this.#unrefunded;
      this.#unrefunded = 0;
    }
  }
}
